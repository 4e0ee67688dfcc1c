// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/registry.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "cpu/native/rows.hpp"
#include "cpu/native/set_tasks.hpp"
#include "cpu/operations.hpp"
#include "dispatch/distribution_loss.hpp"

/// The losses of distributions, side by side, in vector loops over a side's bins: for the largest
/// logit, then for exps and their sums, then for slopes.
namespace boxloss::native {
namespace {

SetTasks tasks_of(const DistributionLossProblem& p) {
  return SetTasks(p.images * p.queries, kSides * p.bins);
}

/// What vector loops read and write: a part of a side, padded.
template <class C>
using Part = Rows<C, 1>;

template <class C>
class Walker {
 public:
  explicit Walker(const DistributionArgs<C>& args)
      : a_(args), code_(vector_code<C>()), has_parts_(a_.bins > kTilePairs) {}

  double loss(std::int64_t row, const RowPart<C>& part) {
    double sum = 0;
    for (int side = 0; side < kSides; ++side) {
      set_softmaxes(row, side);
      sum += a_.is_fgl() ? entropy(wanted_bins(a_, row, part.target, side))
                         : divergence(parts_sum_, teacher_.sum, own_.sum);
    }
    return static_cast<double>(part.weight) * static_cast<double>(a_.loss_factor) * sum;
  }

  /// Calls put(first, count, values) for all slopes times `by`.
  template <class Put>
  void slopes(std::int64_t row, const RowPart<C>& part, C by, const Put& put) {
    for (int side = 0; side < kSides; ++side) {
      set_softmaxes(row, side);
      WantedBins<C> wanted = {};
      if (a_.is_fgl()) wanted = wanted_bins(a_, row, part.target, side);
      for_each_part([&](std::int64_t bin, int count) {
        if (has_parts_) set_exps(bin, count);
        if (a_.is_fgl()) {
          entropy_slopes(wanted, by, bin, count);
        } else {
          divergence_slopes(by, count);
        }
        put(side * a_.bins + bin, count, slopes_.values);
      });
    }
  }

 private:
  struct Softmax {
    std::int64_t first;  ///< the element of the side's first logit
    C largest;
    double sum;
    Part<C> x, exps;  ///< of the last part, which is the only one but for very many bins
  };

  /// Calls use(first bin, count) for parts of a side.
  template <class Use>
  void for_each_part(const Use& use) {
    for (std::int64_t first = 0; first < a_.bins; first += kTilePairs) {
      use(first, static_cast<int>(std::min<std::int64_t>(kTilePairs, a_.bins - first)));
    }
  }

  void read(const Corners& corners, std::int64_t bin, int count, Softmax& s) {
    const auto [data, dtype] = corners.values;
    const std::int64_t at = (s.first + bin) * static_cast<std::int64_t>(size_of(dtype));
    code_.read(static_cast<const std::byte*>(data) + at, dtype, count, s.x.values);
    std::fill(s.x.values + count, s.x.values + whole_blocks(count), kLeast);
  }

  void set_largest(const Corners& corners, std::int64_t row, int side, Softmax& s) {
    s.first = a_.first_of(corners, row) + side * a_.bins;
    s.largest = kLeast;
    for_each_part([&](std::int64_t bin, int count) {
      read(corners, bin, count, s);
      s.largest = larger(s.largest, code_.largest(s.x.values, count));
    });
  }

  void set_exps(std::int64_t bin, int count) {
    if (has_parts_) {
      read(a_.logits, bin, count, own_);
      if (!a_.is_fgl()) read(a_.teacher, bin, count, teacher_);
    }
    if (a_.is_fgl()) return code_.exps(own_.x.values, own_.largest, count, own_.exps.values);
    code_.distill(own_.x.values, own_.largest, teacher_.x.values, teacher_.largest,
                  a_.per_temperature, count, own_.exps.values, teacher_.exps.values, parts_.values);
  }

  void set_softmaxes(std::int64_t row, int side) {
    set_largest(a_.logits, row, side, own_);
    if (!a_.is_fgl()) set_largest(a_.teacher, row, side, teacher_);
    own_.sum = teacher_.sum = parts_sum_ = 0;
    for_each_part([&](std::int64_t bin, int count) {
      set_exps(bin, count);
      own_.sum += code_.sum(own_.exps.values, count);
      if (a_.is_fgl()) return;
      teacher_.sum += code_.sum(teacher_.exps.values, count);
      parts_sum_ += code_.sum(parts_.values, count);
    });
  }

  double entropy(const WantedBins<C>& wanted) {
    const auto below = [&](std::int64_t bin) {
      return own_.largest - a_.logits.values.template get<C>(own_.first + bin);
    };
    const auto log_sum = static_cast<C>(std::log(own_.sum));
    return static_cast<double>(
        shared_entropy(wanted.shares, log_sum, below(wanted.left), below(wanted.left + 1)));
  }

  void entropy_slopes(const WantedBins<C>& wanted, C by, std::int64_t bin, int count) {
    const C per_sum = static_cast<C>(1 / own_.sum);
    const auto set = [&](int i, C share) {
      const C p = own_.exps.values[i] * per_sum;
      slopes_.values[i] = by * entropy_slope(wanted.shares, p, share);
    };
    for (int i = 0; i < count; ++i) set(i, C(0));
    for (const std::int64_t each : {wanted.left, wanted.left + 1}) {
      const std::int64_t i = each - bin;
      if (i >= 0 && i < count) set(static_cast<int>(i), wanted.share_of(each));
    }
  }

  void divergence_slopes(C by, int count) {
    const C per_own = static_cast<C>(1 / own_.sum), per_teacher = static_cast<C>(1 / teacher_.sum);
    for (int i = 0; i < count; ++i) {
      slopes_.values[i] =
          by * (own_.exps.values[i] * per_own - teacher_.exps.values[i] * per_teacher);
    }
  }

  static constexpr C kLeast = -std::numeric_limits<C>::infinity();

  const DistributionArgs<C>& a_;
  const VectorCode<C>& code_;
  const bool has_parts_;
  Softmax own_, teacher_;
  double parts_sum_ = 0;  ///< of the divergence
  Part<C> parts_, slopes_;
};

template <class C>
void write_losses(const DistributionLossProblem& p, const DistributionLossOutputs& outputs,
                  const Execution& execution) {
  const DistributionArgs<C> a = distribution_args<C>(p);
  const SetTasks tasks = tasks_of(p);
  C* const losses = p.reduction == Reduction::kNone ? static_cast<C*>(outputs.loss) : nullptr;
  auto* const sums = static_cast<DistributionSum*>(execution.workspace);
  const std::int64_t of_set = a.rows() > 0 ? tasks.of_set : 0;
  execution.parallel_for(p.sets * of_set, [&](std::int64_t task) {
    DistributionSum own = {};
    Walker<C> walker(a);
    for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
      const std::int64_t target = target_of(a, row);
      double loss = 0;
      if (counts(a, target)) {
        loss = walker.loss(row, row_part(a, row, target));
        own.add(target >= 0, loss);
      }
      if (losses != nullptr) losses[row] = static_cast<C>(loss);
    }
    sums[task] = own;
  });
  const auto reduced = reduced_distribution_loss<C>(p, outputs);
  for (std::int64_t set = 0; set < p.sets; ++set) {
    DistributionSum total = {};
    for (std::int64_t i = 0; i < of_set; ++i) total += sums[set * of_set + i];
    reduced.write(total, set);
  }
}

template <class C>
void write_gradients(const DistributionLossGradProblem& p,
                     const DistributionLossGradOutputs& outputs, const Execution& execution) {
  const DistributionArgs<C> a = distribution_args<C>(p);
  const DistributionGrad<C> grad = distribution_grad<C>(p);
  const SetTasks tasks = tasks_of(p);
  const auto element_bytes = static_cast<std::int64_t>(size_of(p.logits.dtype));
  const std::int64_t row_bytes = a.logits_of_query() * element_bytes;
  execution.parallel_for(p.sets * tasks.of_set, [&](std::int64_t task) {
    Walker<C> walker(a);
    for (std::int64_t row = tasks.begin(task); row < tasks.end(task); ++row) {
      const std::int64_t target = target_of(a, row);
      std::byte* const written = static_cast<std::byte*>(outputs.logits) + row * row_bytes;
      if (!counts(a, target)) {
        std::memset(written, 0, static_cast<std::size_t>(row_bytes));
        continue;
      }
      const RowPart<C> part = row_part(a, row, target);
      walker.slopes(row, part, grad.by(a, row, part),
                    [&](std::int64_t first, int count, const C* values) {
                      std::byte* const to = written + first * element_bytes;
                      vector_code<C>().write(values, count, to, p.logits.dtype);
                    });
    }
  });
}

}  // namespace

std::size_t Operations::workspace_bytes(const DistributionLossProblem& p) {
  return static_cast<std::size_t>(p.sets * tasks_of(p).of_set) * sizeof(DistributionSum);
}

void Operations::distribution_loss(const DistributionLossProblem& p,
                                   const DistributionLossOutputs& outputs,
                                   const Execution& execution) {
  cpu_capability();  // throws here, not in a thread
  with_compute_type(p,
                    [&](auto compute) { write_losses<decltype(compute)>(p, outputs, execution); });
}

void Operations::distribution_loss_backward(const DistributionLossGradProblem& p,
                                            const DistributionLossGradOutputs& outputs,
                                            const Execution& execution) {
  cpu_capability();
  with_compute_type(
      p, [&](auto compute) { write_gradients<decltype(compute)>(p, outputs, execution); });
}

}  // namespace boxloss::native
