// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <boxloss/class_loss.hpp>
#include <cmath>
#include <vector>

#include "cpu/operations.hpp"
#include "cpu/reference/indices.hpp"
#include "dtypes/elements.hpp"

/// The reference of the class losses: one query after the other, in double, with the losses as
/// their sources write them, and its own reading of targets.
namespace boxloss {
namespace {

constexpr std::int64_t kNone = -1, kLeftOut = -2;

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

/// -log(sigmoid(x)): the binary cross-entropy of sigmoid(x) towards 1; of -x, that towards 0.
double miss(double x) { return (x < 0 ? -x : 0) + std::log1p(std::exp(-std::fabs(x))); }

double cross_entropy(double x, double t) { return t * miss(x) + (1 - t) * miss(-x); }

struct Value {
  double loss, slope;
};

class Reader {
 public:
  explicit Reader(const ClassLossProblem& p) : p_(p) {}

  /// A query's class, or one of the numbers above.
  std::int64_t class_of(std::int64_t row) const {
    const std::int64_t target = reference::index_at(p_.target_index, row);
    if (target == kLeftOut) return kLeftOut;
    if (target < 0 || target >= p_.targets) return kNone;
    const std::int64_t label = reference::index_at(p_.labels, target);
    return label >= 0 && label < p_.classes ? label : kNone;
  }

  /// All of a query's logits.
  std::vector<double> logits(std::int64_t row) const {
    const std::int64_t queries = p_.queries, block = row / queries;
    const LogitView& x = p_.logits;
    const std::int64_t first = block / p_.images * x.set_stride +
                               block % p_.images * x.image_stride + row % queries * x.query_stride;
    std::vector<double> values;
    for (std::int64_t c = 0; c < p_.classes; ++c) {
      values.push_back(number({x.data, x.dtype}, first + c * x.class_stride));
    }
    return values;
  }

  /// The loss of each class of a query, and its derivative by the class' logit. Of softmax the loss
  /// is the last class'.
  std::vector<Value> values(std::int64_t row) const {
    const std::vector<double> x = logits(row);
    const std::int64_t own = class_of(row);
    std::vector<Value> values(x.size(), Value{0, 0});
    if (own == kLeftOut) return values;
    if (p_.mode == ClassLoss::kSoftmax) return softmax_values(x, row);
    for (std::size_t c = 0; c < x.size(); ++c) {
      const bool is_own = static_cast<std::int64_t>(c) == own;
      const double weight = weight_of(static_cast<std::int64_t>(c));
      const Value value = is_own ? own_value(x[c], quality(row)) : other_value(x[c]);
      values[c] = {weight * value.loss, weight * value.slope};
    }
    return values;
  }

  /// What the mean divides by, of one query.
  double share(std::int64_t row) const {
    return p_.mode == ClassLoss::kSoftmax ? softmax_weight(row) : class_of(row) >= 0 ? 1 : 0;
  }

 private:
  static double number(const ArrayView& array, std::int64_t i) {
    return Elements<Any>{array.data, array.dtype}.get<double>(i);
  }

  double weight_of(std::int64_t c) const {
    return p_.weight.dtype == DType::kNone ? 1 : number(p_.weight, c);
  }

  double quality(std::int64_t row) const {
    if (p_.quality.dtype != DType::kNone) {
      return number(p_.quality, reference::index_at(p_.target_index, row));
    }
    return p_.query_quality.dtype != DType::kNone ? number(p_.query_quality, row) : 1;
  }

  double softmax_weight(std::int64_t row) const {
    const std::int64_t own = class_of(row);
    if (own == kLeftOut) return 0;
    return own == kNone ? p_.no_object_weight * weight_of(p_.classes - 1) : weight_of(own);
  }

  std::vector<Value> softmax_values(const std::vector<double>& x, std::int64_t row) const {
    const std::int64_t own = class_of(row);
    const std::size_t wanted = static_cast<std::size_t>(own == kNone ? p_.classes - 1 : own);
    double largest = x[0];
    for (const double each : x) largest = each > largest || each != each ? each : largest;
    double sum = 0;
    for (const double each : x) sum += std::exp(each - largest);
    const double weight = softmax_weight(row);
    std::vector<Value> values;
    for (std::size_t c = 0; c < x.size(); ++c) {
      const double p = std::exp(x[c] - largest) / sum;
      values.push_back({0, weight * (p - (c == wanted ? 1 : 0))});
    }
    values.back().loss = weight * (std::log(sum) + (largest - x[wanted]));
    return values;
  }

  double alpha() const {
    const bool is_varifocal = p_.mode == ClassLoss::kVarifocal;
    return p_.alpha.value_or(is_varifocal ? 0.75 : p_.mode == ClassLoss::kMal ? 1 : 0.25);
  }
  double gamma() const { return p_.gamma.value_or(p_.mode == ClassLoss::kMal ? 1.5 : 2); }

  Value other_value(double x) const {
    const double p = sigmoid(x), rest = sigmoid(-x), loss = miss(-x);
    const double focus = std::pow(p, gamma());
    // 0 * infinity is no derivative of 1.
    const double by_focus = gamma() == 0 ? 0 : gamma() * focus * rest * loss;
    switch (p_.mode) {
      case ClassLoss::kFocal: {
        const double by = alpha() < 0 ? 1 : 1 - alpha();
        return {by * focus * loss, by * (by_focus + focus * p)};
      }
      case ClassLoss::kIaBce: return {focus * loss, by_focus + focus * p};
      case ClassLoss::kBce: return {loss, p};
      default: return {alpha() * focus * loss, alpha() * focus * p};
    }
  }

  Value own_value(double x, double q) const {
    const double p = sigmoid(x), rest = sigmoid(-x);
    switch (p_.mode) {
      case ClassLoss::kFocal: {
        const double by = alpha() < 0 ? 1 : alpha(), loss = miss(x);
        const double focus = std::pow(rest, gamma());
        const double by_focus = gamma() == 0 ? 0 : gamma() * focus * p * loss;
        return {by * focus * loss, by * (-by_focus - focus * rest)};
      }
      case ClassLoss::kVarifocal: return {q * cross_entropy(x, q), q * (p - q)};
      case ClassLoss::kMal: {
        const double t = std::pow(q, gamma());
        return {cross_entropy(x, t), p - t};
      }
      case ClassLoss::kIaBce: {
        const double t = std::pow(p, alpha()) * std::pow(q, 1 - alpha());
        const double floored = t < 0.01 ? 0.01 : t;
        return {cross_entropy(x, floored), p - floored};
      }
      default: return {cross_entropy(x, q), p - q};
    }
  }

  const ClassLossProblem& p_;
};

template <class C>
void write_losses(const ClassLossProblem& p, const ClassLossOutputs& outputs) {
  const Reader reader(p);
  C* const losses = static_cast<C*>(outputs.loss);
  C* const scales = static_cast<C*>(outputs.scale);
  const std::int64_t rows = p.images * p.queries;
  for (std::int64_t set = 0; set < p.sets; ++set) {
    double total = 0, shares = 0;
    for (std::int64_t row = set * rows; row < (set + 1) * rows; ++row) {
      double loss = 0;
      for (const Value& each : reader.values(row)) loss += each.loss;
      if (p.reduction == Reduction::kNone) losses[row] = static_cast<C>(loss);
      total += loss;
      shares += reader.share(row);
    }
    double divisor = 1;
    if (p.reduction == Reduction::kMean) {
      const bool is_softmax = p.mode == ClassLoss::kSoftmax;
      divisor = is_softmax && shares != 0 ? shares : std::max(shares, 1.0);
      if (p.normalizer.dtype != DType::kNone) {
        divisor = Elements<Any>{p.normalizer.data, p.normalizer.dtype}.get<double>(
            set * p.normalizer_stride);
      }
    }
    scales[set] = static_cast<C>(1 / divisor);
    if (p.reduction != Reduction::kNone) losses[set] = static_cast<C>(total / divisor);
  }
}

template <class C>
void write_gradients(const ClassLossGradProblem& p, const ClassLossGradOutputs& outputs) {
  const Reader reader(p);
  const auto* const grads = static_cast<const C*>(p.grad);
  const auto* const scales = static_cast<const C*>(p.scale);
  const Outputs<Any> written = {outputs.logits, p.logits.dtype};
  const std::int64_t rows = p.images * p.queries;
  for (std::int64_t row = 0; row < p.sets * rows; ++row) {
    const std::int64_t set = row / rows, block = row / p.queries, query = row % p.queries;
    const double by = static_cast<double>(grads[p.reduction == Reduction::kNone ? row : set]) *
                      static_cast<double>(scales[set]);
    const std::vector<Value> values = reader.values(row);
    for (std::int64_t c = 0; c < p.classes; ++c) {
      const std::int64_t at =
          p.is_transposed ? (block * p.classes + c) * p.queries + query : row * p.classes + c;
      const bool is_left_out = reader.class_of(row) == kLeftOut;
      written.set(at, is_left_out ? 0.0 : by * values[static_cast<std::size_t>(c)].slope);
    }
  }
}

}  // namespace

void reference::Operations::class_loss(const ClassLossProblem& p, const ClassLossOutputs& outputs,
                                       const Execution&) {
  if (compute_dtype(p) == DType::kF64) return write_losses<double>(p, outputs);
  write_losses<float>(p, outputs);
}

void reference::Operations::class_loss_backward(const ClassLossGradProblem& p,
                                                const ClassLossGradOutputs& outputs,
                                                const Execution&) {
  if (compute_dtype(p) == DType::kF64) return write_gradients<double>(p, outputs);
  write_gradients<float>(p, outputs);
}

}  // namespace boxloss
