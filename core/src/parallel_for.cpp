// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <mutex>
#include <system_error>
#include <thread>

namespace boxloss {
namespace {

struct Job {
  std::int64_t tasks;
  const std::function<void(std::int64_t)>& task;
  std::atomic<std::int64_t> next = 0;

  bool is_left() const { return next < tasks; }
  void work() {
    for (std::int64_t i = next++; i < tasks; i = next++) task(i);
  }
};

/// A std::condition_variable whose functions are the C library's: libstdc++ 12 has a newer version
/// of `wait`, which the wheel's oldest systems lack. Never destroyed, as the pool.
class Condition {
 public:
  template <typename Predicate>
  void wait(std::unique_lock<std::mutex>& lock, Predicate holds) {
    while (!holds()) pthread_cond_wait(&condition_, lock.mutex()->native_handle());
  }
  void notify_one() { pthread_cond_signal(&condition_); }
  void notify_all() { pthread_cond_broadcast(&condition_); }

 private:
  pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

class Pool;
std::atomic<Pool*> pool = nullptr;

/// A pool of threads, kept from the first job on. They are never joined: they wait until the
/// process ends.
class Pool {
 public:
  void run(Job& job) {
    // Runs on the caller's thread while another caller has the pool, or from within one of its
    // tasks.
    if (job.tasks <= 1 || is_taken_.test_and_set()) return job.work();
    if (!has_threads_) start_threads();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_ = &job;
    }
    has_job_.notify_all();
    job.work();
    if (is_of_parent()) return;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      job_ = nullptr;
      is_done_.wait(lock, [this] { return at_work_ == 0; });
    }
    is_taken_.clear();
  }

 private:
  /// Whether this process is the child of a task that forked. It has no other threads to wait for,
  /// and a thread that is gone may hold the lock.
  bool is_of_parent() const { return pool != this; }

  void start_threads() {
    has_threads_ = true;
    try {
      for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) {
        std::thread([this] { wait_for_jobs(); }).detach();
      }
    } catch (const std::system_error&) {
      // The system refuses more threads: the running ones share the work.
    }
  }

  void wait_for_jobs() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      has_job_.wait(lock, [this] { return job_ != nullptr && job_->is_left(); });
      Job& job = *job_;
      ++at_work_;
      lock.unlock();
      job.work();
      if (is_of_parent()) _exit(1);  // no caller is here to return to
      lock.lock();
      if (--at_work_ == 0) is_done_.notify_one();
    }
  }

  std::atomic_flag is_taken_ = ATOMIC_FLAG_INIT;
  bool has_threads_ = false;
  std::mutex mutex_;
  Condition has_job_, is_done_;
  Job* job_ = nullptr;
  int at_work_ = 0;
};

void make_pool() { pool = new Pool; }

}  // namespace

void parallel_for(std::int64_t tasks, const std::function<void(std::int64_t)>& task) {
  if (tasks > 0 && task == nullptr) throw InvalidArgument("task is empty; it must be a function");
  // A forked process has none of the threads, but their locks in whatever state they were: it gets
  // a pool of its own.
  [[maybe_unused]] static const int registered =
      (make_pool(), pthread_atfork(nullptr, nullptr, make_pool));
  Job job{tasks, task};
  pool.load()->run(job);
}

}  // namespace boxloss
