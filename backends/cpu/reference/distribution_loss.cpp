// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/distribution_loss.hpp>
#include <cmath>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dtypes/elements.hpp"

/// The reference of the losses of distributions: one query after the other, in double, with the
/// logarithms of all probabilities, as the sources write them, and its own reading of targets.
namespace boxloss {
namespace {

constexpr std::int64_t kNone = -1, kLeftOut = -2;

using Values = std::vector<double>;

double number(const ArrayView& array, std::int64_t i) {
  return Elements<Any>{array.data, array.dtype}.get<double>(i);
}

struct Softmax {
  Values logs, p;
};

/// Of x / temperature.
Softmax softmax(const Values& x, double temperature) {
  double largest = x[0];
  for (const double each : x) largest = each > largest || each != each ? each : largest;
  double sum = 0;
  for (const double each : x) sum += std::exp((each - largest) / temperature);
  Softmax found;
  for (const double each : x) {
    const double below = (each - largest) / temperature;
    found.logs.push_back(below - std::log(sum));
    found.p.push_back(std::exp(below) / sum);
  }
  return found;
}

/// How much of a side is to be in each bin: in one and the next.
struct Shares {
  Values of_bins;
  std::size_t left;
};

class Reader {
 public:
  explicit Reader(const DistributionLossProblem& p)
      : p_(p), is_fgl_(p.mode == DistributionLoss::kFgl) {}

  /// A query's row of target, or one of the numbers above.
  std::int64_t target_of(std::int64_t row) const {
    const std::int64_t target = reference::index_at(p_.target_index, row);
    if (target == kLeftOut) return kLeftOut;
    return target < 0 || (is_fgl_ && target >= p_.targets) ? kNone : target;
  }
  bool counts(std::int64_t row) const {
    return target_of(row) >= 0 || (target_of(row) == kNone && !is_fgl_);
  }

  /// The loss of a query that counts, and to `slopes`, if they are given, its derivatives.
  double loss(std::int64_t row, double* slopes = nullptr) const {
    const double temperature = is_fgl_ ? 1 : p_.temperature;
    double loss = 0;
    for (int side = 0; side < 4; ++side) {
      const Softmax own = softmax(logits(p_.logits, row, side), temperature);
      Values wanted;  // of each bin
      if (is_fgl_) {
        const auto [shares, left] = shares_of_side(row, side);
        loss -= shares[left] * own.logs[left] + shares[left + 1] * own.logs[left + 1];
        wanted = shares;
      } else {
        const Softmax teacher = softmax(logits(p_.teacher, row, side), temperature);
        wanted = teacher.p;
        for (std::size_t bin = 0; bin < wanted.size(); ++bin) {
          loss += wanted[bin] * (teacher.logs[bin] - own.logs[bin]);
        }
      }
      double sum = 1;  // or NaN
      for (const double each : wanted) sum += each * 0;
      for (std::size_t bin = 0; bin < wanted.size() && slopes != nullptr; ++bin) {
        *slopes++ = weight(row) * temperature * (sum * own.p[bin] - wanted[bin]);
      }
    }
    return weight(row) * temperature * temperature * loss;
  }

 private:
  double weight(std::int64_t row) const {
    if (target_of(row) == kNone) return number(p_.confidence, row % (p_.images * p_.queries));
    return p_.quality.dtype == DType::kNone ? 1 : number(p_.quality, row);
  }

  Values logits(const CornerView& view, std::int64_t row, int side) const {
    const std::int64_t block = row / p_.queries;
    const std::int64_t first = block / p_.images * view.set_stride +
                               block % p_.images * view.image_stride +
                               row % p_.queries * view.query_stride + side * p_.bins;
    Values values;
    for (std::int64_t bin = 0; bin < p_.bins; ++bin) {
      values.push_back(number({view.data, view.dtype}, first + bin));
    }
    return values;
  }

  Shares shares_of_side(std::int64_t row, int side) const {
    const std::int64_t center = side % 2, size = center + 2, target = target_of(row);
    const double of_reference = number(p_.reference, 4 * row + center);
    const double of_target = number(p_.target, 4 * target + center);
    const double half = number(p_.target, 4 * target + size) / 2;
    const double distance =
        side < 2 ? of_reference - (of_target - half) : of_target + half - of_reference;
    const double unit = number(p_.reference, 4 * row + size) / p_.reg_scale + 1e-16;
    double offset = distance / unit - 0.5 * p_.reg_scale;
    const double first = number(p_.edges, 0), last = number(p_.edges, p_.bins - 1);
    offset = offset < first ? first : offset > last ? last : offset;
    std::int64_t bin = 0;
    while (bin + 2 < p_.bins && number(p_.edges, bin + 1) <= offset) ++bin;
    const double from = number(p_.edges, bin), to = number(p_.edges, bin + 1);
    const auto left = static_cast<std::size_t>(bin);
    Values shares(static_cast<std::size_t>(p_.bins), 0.0);
    shares[left] = 1 - (offset - from) / (to - from);
    shares[left + 1] = (offset - from) / (to - from);
    return {shares, left};
  }

  const DistributionLossProblem& p_;
  bool is_fgl_;
};

/// What losses of matched queries, and of others, are multiplied by.
struct Scales {
  double matched = 1, others = 1;
};

Scales scales_of(const DistributionLossProblem& p, std::int64_t set, double matched,
                 double others) {
  if (p.reduction != Reduction::kMean) return {};
  if (p.normalizer.dtype != DType::kNone) {
    return {matched > 0 ? 1 / number(p.normalizer, set * p.normalizer_stride) : 0, 1};
  }
  if (p.mode == DistributionLoss::kFgl) return {1 / std::max(matched, 1.0), 1};
  if (matched + others == 0) return {0, 0};
  const double of_images = 4 / static_cast<double>(p.images);
  const double m = std::sqrt(matched * of_images), o = std::sqrt(others * of_images);
  return {m / std::max(4 * matched, 1.0) / (m + o), o / std::max(4 * others, 1.0) / (m + o)};
}

template <class C>
void write_losses(const DistributionLossProblem& p, const DistributionLossOutputs& outputs) {
  const Reader reader(p);
  C* const losses = static_cast<C*>(outputs.loss);
  C* const scales = static_cast<C*>(outputs.scale);
  const std::int64_t rows = p.images * p.queries;
  for (std::int64_t set = 0; set < p.sets; ++set) {
    double sums[2] = {}, counts[2] = {};  // of matched queries, of others
    for (std::int64_t row = set * rows; row < (set + 1) * rows; ++row) {
      const double loss = reader.counts(row) ? reader.loss(row) : 0;
      const int which = reader.target_of(row) >= 0 ? 0 : 1;
      if (p.reduction == Reduction::kNone) losses[row] = static_cast<C>(loss);
      sums[which] += loss;
      counts[which] += reader.counts(row) ? 1 : 0;
    }
    const Scales by = scales_of(p, set, counts[0], counts[1]);
    scales[2 * set] = static_cast<C>(by.matched);
    scales[2 * set + 1] = static_cast<C>(by.others);
    if (p.reduction == Reduction::kNone) continue;
    losses[set] = static_cast<C>(by.matched * sums[0] + by.others * sums[1]);
  }
}

template <class C>
void write_gradients(const DistributionLossGradProblem& p,
                     const DistributionLossGradOutputs& outputs) {
  const Reader reader(p);
  const auto* const grads = static_cast<const C*>(p.grad);
  const auto* const scales = static_cast<const C*>(p.scale);
  const Outputs<Any> written = {outputs.logits, p.logits.dtype};
  const std::int64_t rows = p.images * p.queries;
  for (std::int64_t row = 0; row < p.sets * rows; ++row) {
    const std::int64_t set = row / rows;
    const int which = reader.target_of(row) >= 0 ? 0 : 1;
    const double by = static_cast<double>(grads[p.reduction == Reduction::kNone ? row : set]) *
                      static_cast<double>(scales[2 * set + which]);
    Values slopes(static_cast<std::size_t>(4 * p.bins), 0.0);
    const bool counts = reader.counts(row);
    if (counts) reader.loss(row, slopes.data());
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      written.set(row * 4 * p.bins + static_cast<std::int64_t>(i), counts ? by * slopes[i] : 0.0);
    }
  }
}

}  // namespace

void reference::Operations::distribution_loss(const DistributionLossProblem& p,
                                              const DistributionLossOutputs& outputs,
                                              const Execution&) {
  if (compute_dtype(p) == DType::kF64) return write_losses<double>(p, outputs);
  write_losses<float>(p, outputs);
}

void reference::Operations::distribution_loss_backward(const DistributionLossGradProblem& p,
                                                       const DistributionLossGradOutputs& outputs,
                                                       const Execution&) {
  if (compute_dtype(p) == DType::kF64) return write_gradients<double>(p, outputs);
  write_gradients<float>(p, outputs);
}

}  // namespace boxloss
