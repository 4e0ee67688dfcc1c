// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "broken.hpp"
#include "cost_problem.hpp"
#include "memory.hpp"

namespace boxloss::conformance {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const DeviceMemory& memory() { return *device_memory(whole().device); }

// --- Other results

void edit_costs(const CostProblem& p, float* cost, const Execution& execution, const Edit& edit) {
  whole().matching_cost(p, cost, execution);
  edit_on_device(cost, DType::kF32, cost_entries(p), edit);
}

void wrong_last_entry(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [](Array& values) {
    const std::int64_t last = values.count() - 1;
    values.set(last, values.get(last) * (1 + 0x1p-16));
  });
}

void unwritten_last_column(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [&](Array& values) {
    const std::int64_t columns = p.target.slots;
    for (std::int64_t i = columns - 1; i < values.count(); i += columns) values.set(i, kNan);
  });
}

void unwritten_columns_of_no_image(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [&](Array& values) {
    const Array offsets = read_on_device(p.offsets.data, p.offsets.dtype, cost_images(p) + 1);
    const std::int64_t columns = p.target.slots;
    for (std::int64_t i = 0; i < values.count(); ++i) {
      const auto column = static_cast<double>(i % columns);
      const bool has_image = offsets.get(0) <= column && column < offsets.get(offsets.count() - 1);
      if (!has_image) values.set(i, kNan);
    }
  });
}

void unwritten_columns_behind(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [&](Array& values) {
    const Array offsets = read_on_device(p.offsets.data, p.offsets.dtype, cost_images(p) + 1);
    for (std::int64_t i = 0; i < values.count(); ++i) {
      const auto column = static_cast<double>(i % p.target.slots);
      if (column >= offsets.get(offsets.count() - 1)) values.set(i, kNan);
    }
  });
}

void replaced_columns_of_no_image(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [&](Array& values) {
    for (std::int64_t i = 0; i < values.count(); ++i) {
      if (values.get(i) == 0) values.set(i, *p.nonfinite);
    }
  });
}

void first_layer_for_all(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [&](Array& values) {
    const std::int64_t entries = p.pred.slots * p.target.slots;
    for (std::int64_t i = entries; i < values.count(); ++i) values.set(i, values.get(i % entries));
  });
}

void swallowed_nan(const CostProblem& p, float* cost, const Execution& execution) {
  edit_costs(p, cost, execution, [](Array& values) {
    for (std::int64_t i = 0; i < values.count(); ++i) {
      if (std::isnan(values.get(i))) values.set(i, 0);
    }
  });
}

void write_past_costs(const CostProblem& p, float* cost, const Execution& execution) {
  whole().matching_cost(p, cost, execution);
  edit_on_device(cost + cost_entries(p), DType::kF32, 1, [](Array& beyond) { beyond.set(0, 0); });
}

void replaced_nan_alone(const CostProblem& p, float* cost, const Execution& execution) {
  CostProblem visible = p;
  visible.nonfinite.reset();
  edit_costs(visible, cost, execution, [&](Array& values) {
    for (std::int64_t i = 0; i < values.count(); ++i) {
      if (std::isnan(values.get(i))) values.set(i, *p.nonfinite);
    }
  });
}

// --- Other problems

template <void (*kChange)(CostProblem&)>
void other_problem(const CostProblem& p, float* cost, const Execution& execution) {
  CostProblem other = p;
  kChange(other);
  whole().matching_cost(other, cost, execution);
}

void preds_of_first_image(CostProblem& p) { p.pred.image_stride = 0; }
void first_query(CostProblem& p) { p.pred.slot_stride = 0; }
void neighbouring_coordinates(CostProblem& p) { p.pred.coordinate_stride = 1; }
void packed_preds(CostProblem& p) { p.pred.image_stride = p.pred.slots * p.pred.slot_stride; }
void scores_of_first_query(CostProblem& p) { p.scores.query_stride = 0; }
void scores_of_first_block(CostProblem& p) { p.scores.block_stride = 0; }
void full_class_weight(CostProblem& p) { p.class_weight = 1; }
void weight_that_leaves_nothing_out(CostProblem& p) {
  p.class_weight = std::numeric_limits<float>::min();
}
void visible_nonfinite(CostProblem& p) { p.nonfinite.reset(); }
void added_eps(CostProblem& p) { p.eps_mode = EpsMode::kAdd; }
void usual_alpha(CostProblem& p) { p.focal_alpha = 0.25; }
void usual_gamma(CostProblem& p) { p.focal_gamma = 2; }
void sigmoid_for_softmax(CostProblem& p) { p.class_term = ClassTerm::kSigmoid; }

/// Each label becomes kEdit(label).
template <std::int64_t (*kEdit)(std::int64_t label, std::int64_t classes)>
void other_labels(const CostProblem& p, float* cost, const Execution& execution) {
  Array labels = read_on_device(p.labels.data, p.labels.dtype, p.target.slots);
  for (std::int64_t t = 0; t < labels.count(); ++t) {
    const auto label = static_cast<std::int64_t>(labels.get(t));
    labels.set(t, static_cast<double>(kEdit(label, p.classes)));
  }
  const Input edited(memory(), labels);
  CostProblem other = p;
  other.labels.data = edited.data();
  whole().matching_cost(other, cost, execution);
}

std::int64_t one_less(std::int64_t label, std::int64_t) { return label - 1; }

std::int64_t clamped(std::int64_t label, std::int64_t classes) {
  return std::clamp<std::int64_t>(label, 0, classes - 1);
}

std::int64_t counted_from_the_end(std::int64_t label, std::int64_t classes) {
  return label < 0 ? label + classes : label;
}

std::int64_t in_32_bits(std::int64_t label, std::int64_t) {
  return static_cast<std::int32_t>(label);
}

/// Packed boxes of float32.
Array corners_on_device(const BoxView& view) {
  Array values = read_on_device(view.data, view.dtype, 4 * view.images * view.slots);
  for (std::int64_t i = 0; i < values.count(); i += 4) {
    const Box<double> box = to_corners(
        Box<double>{values.get(i), values.get(i + 1), values.get(i + 2), values.get(i + 3)},
        view.format);
    values.set(i, box.x1);
    values.set(i + 1, box.y1);
    values.set(i + 2, box.x2);
    values.set(i + 3, box.y2);
  }
  return values;
}

void l1_of_corners(const CostProblem& p, float* cost, const Execution& execution) {
  const Input pred(memory(), corners_on_device(p.pred));
  const Input target(memory(), corners_on_device(p.target));
  CostProblem other = p;
  other.pred.data = pred.data();
  other.target.data = target.data();
  other.pred.format = other.target.format = BoxFormat::kXyxy;
  whole().matching_cost(other, cost, execution);
}

void shifted_log_sum_exp(const CostProblem& p, float* cost, const Execution& execution) {
  const std::int64_t count = p.pred.images * p.pred.slots;
  Array sums = read_on_device(p.log_sum_exp.data, p.log_sum_exp.dtype, count);
  for (std::int64_t i = 0; i < count; ++i) sums.set(i, sums.get(i / p.pred.slots * p.pred.slots));
  const Input edited(memory(), sums);
  CostProblem other = p;
  other.log_sum_exp.data = edited.data();
  whole().matching_cost(other, cost, execution);
}

template <void (*kCost)(const CostProblem&, float*, const Execution&)>
Breakage breakage(const char* name, const char* case_name) {
  return {name, case_name, nullptr, nullptr, kCost};
}

}  // namespace

const std::vector<Breakage>& cost_breakages() {
  static const std::vector<Breakage> all = {
      breakage<wrong_last_entry>("the last entry is off by 256 roundings",
                                 "one image, all columns"),
      breakage<unwritten_last_column>("the last column is not written", "one image, all columns"),
      breakage<unwritten_columns_of_no_image>("columns before the first image are not written",
                                              "columns before the first"),
      breakage<unwritten_columns_behind>("columns behind the last image are not written",
                                         "columns behind the last"),
      breakage<replaced_columns_of_no_image>("columns of no image are taken for infinite",
                                             "columns of no image"),
      breakage<write_past_costs>("an entry too many is written", "one entry"),
      breakage<first_layer_for_all>("each layer has the first's costs", "none, layers"),
      breakage<other_problem<preds_of_first_image>>("each image has the first's preds", "none"),
      breakage<other_problem<first_query>>("each query is the first", "none"),
      breakage<other_problem<neighbouring_coordinates>>("coordinates are taken to be neighbours",
                                                        "preds in planes"),
      breakage<other_problem<packed_preds>>("preds have no gaps", "gaps"),
      breakage<other_problem<scores_of_first_query>>("each query has the first's scores", "given"),
      breakage<other_problem<scores_of_first_block>>("each image has the first's logits",
                                                     "softmax"),
      breakage<other_problem<scores_of_first_block>>("each layer has the first's matrix",
                                                     "given, layers"),
      breakage<other_labels<one_less>>("labels count from 1", "sigmoid"),
      breakage<other_labels<clamped>>("labels are clamped", "sigmoid labels"),
      breakage<other_labels<counted_from_the_end>>("-1 is the last class", "sigmoid labels"),
      breakage<other_labels<in_32_bits>>("labels lose their upper halves", "sigmoid labels, int64"),
      breakage<other_problem<full_class_weight>>("the class weight is ignored", "sigmoid, layers"),
      breakage<other_problem<weight_that_leaves_nothing_out>>("a weight of 0 lets NaN through",
                                                              "no class, given"),
      breakage<shifted_log_sum_exp>("each query has the first's log-sum-exp", "softmax"),
      breakage<other_problem<sigmoid_for_softmax>>("softmax is a sigmoid", "softmax"),
      breakage<other_problem<usual_alpha>>("focal_alpha is ignored", "focal, other alpha"),
      breakage<other_problem<usual_gamma>>("focal_gamma is ignored", "focal, gamma 1.5"),
      breakage<l1_of_corners>("l1 is of corners", "none"),
      breakage<other_problem<added_eps>>("eps_mode is ignored", "kinks at eps"),
      breakage<other_problem<visible_nonfinite>>("nonfinite is ignored", "special, replaced"),
      breakage<replaced_nan_alone>("infinity is not replaced", "special, f64 replaced"),
      breakage<swallowed_nan>("NaN is swallowed", "special"),
  };
  return all;
}

}  // namespace boxloss::conformance
