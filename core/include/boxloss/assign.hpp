// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/device.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/view.hpp>
#include <cstddef>
#include <limits>

/// The assignment of least total cost: of each image's queries to its own columns, as many as there
/// are of the fewer, in each layer and group by itself.
///
/// It is SciPy's linear_sum_assignment, index by index and ties included, wherever that has an
/// answer (D. Crouse, On implementing 2D rectangular assignment algorithms, 2016). Costs that are
/// not finite are taken last: their number is minimized first, then the sum of the others. What is
/// left with +inf is no pair; what is left with NaN or -inf is one, so that the loss shows it.
namespace boxloss {

struct Implementation;

/// Non-owned numbers of shape (layers, queries, columns), of any dtype. They are computed with as
/// float64, which has every integer up to 2^53. Strides count elements and may be 0, not negative.
struct CostView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t layer_stride = kUnsetStride, query_stride = kUnsetStride, column_stride = 1;
};

/// All inputs. All pointers are on `device`.
///
/// Matrices that have nothing to do with images are layers of one image: rows are its queries.
struct AssignProblem {
  Device device = Device::kCpu;
  std::int64_t layers = 1;
  std::int64_t images = kUnsetSize, queries = kUnsetSize, columns = kUnsetSize;  ///< must be set
  /// Of each query of an image with each column, of which only the image's own are read.
  CostView cost = {};
  /// (images + 1), int32 or int64: image b owns columns offsets[b] to offsets[b + 1]. Columns of no
  /// image are in no pair. If one decreases or lies outside [0, columns], no column is. Optional
  /// for one image, which then owns all columns.
  ArrayView offsets = {};
  /// Optional, for one image without offsets and groups: (layers, 2), int32 or int64, of each layer
  /// how many queries and columns there are; others are in no pair. A layer where one lies outside
  /// [0, queries] or [0, columns] has no pairs.
  ArrayView lengths = {};
  /// Groups of consecutive queries, equally many in each, that are assigned separately.
  std::int64_t groups = 1;
  /// The greatest total instead, which is the least of the negated costs: what is said of +inf
  /// holds for -inf.
  bool maximize = false;
  /// Only costs up to it are pairs, and what has no pair costs half of it: the sum of pairs, and of
  /// that for each query and column without one, is the least. A floating cost is compared with the
  /// limit as its dtype has it. Costs that are not finite are no pairs then. +inf: there is no
  /// limit. Not with `maximize`.
  double cost_limit = std::numeric_limits<double>::infinity();
  /// Of the outputs: kI64 or kI32.
  DType index = DType::kI64;
};

/// Each is written whole, or null if it is not wanted; -1 stands for none.
struct AssignOutputs {
  /// (layers, groups * columns): of each column in each group its query, as a row of the list
  /// (layers * images * queries).
  void* pred_index = nullptr;
  /// The same for the column: its own number where it has a query.
  void* target_index = nullptr;
  /// (layers, images, queries): the column of each query.
  void* target_of_query = nullptr;
  /// As pred_index, but the query's number in its image.
  void* query_of_column = nullptr;
};

/// Checks all of a problem that needs no sizes, as for a loss.
BOXLOSS_API void check_options(const AssignProblem& problem);

/// Bytes of workspace that a run needs. Throws as a run does, but looks at no pointers.
BOXLOSS_API std::size_t assign_workspace_bytes(const Implementation& implementation,
                                               const AssignProblem& problem);

/// Throws InvalidArgument or Unsupported, naming the argument, before it reads or writes anything.
BOXLOSS_API void assign(const Implementation& implementation, const AssignProblem& problem,
                        const AssignOutputs& outputs, const Execution& execution);

}  // namespace boxloss
