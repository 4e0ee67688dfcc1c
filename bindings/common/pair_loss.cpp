// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "pair_loss.hpp"

namespace boxloss::binding {
namespace {

using Boxes = Array<std::int64_t>;

void set_boxes(BoxView& view, const Boxes& boxes, const Grid& grid, const Grid::Strides& strides) {
  view.data = boxes.data;
  view.images = grid.images;
  view.slots = grid.slots;
  view.image_stride = strides.image;
  view.slot_stride = strides.slot;
  view.coordinate_stride = stride_of(boxes, 1);
}

/// Of one array, whatever its leading dimensions are.
std::optional<Grid> grid_of(const Boxes& boxes) {
  const Boxes* const alone = &boxes;
  return binding::grid_of(&alone, 1);
}

/// Pairs by index, of two lists.
void set_lists(AnyPairProblem& p, const PairArguments<Described<std::int64_t>>& a,
               const std::array<const Boxes*, 2>& grads, GradOutputs& views) {
  const Boxes& index = *Pairs<std::int64_t>::index_of(a);
  const bool has_sets = index.rank == 2;
  p.pairing.sets = has_sets ? index.size(0) : 1;
  p.pairing.pairs = index.size(-1);
  for (const auto& [view, boxes] : {std::tie(p.pred, a.pred), std::tie(p.target, a.target)}) {
    const Grid grid = *grid_of(boxes);
    set_boxes(view, boxes, grid, grid.strides[0]);
  }
  const auto view_of = [&](const Boxes* grad) -> GradView {
    if (grad == nullptr) return {};
    const bool is_reduced = p.reduction != Reduction::kNone;
    return {grad->data, has_sets ? stride_of(*grad, grad->rank) : 0,
            is_reduced ? 0 : stride_of(*grad, 1)};
  };
  views = {view_of(grads[0]), view_of(grads[1])};
}

/// pred, target and unreduced gradients; their number.
template <class Each, class Args>
std::size_t on_grid(Args& a, const std::array<Each*, 2>& grads, std::array<Each*, 4>& arrays) {
  std::size_t count = 0;
  for (Each* each : {static_cast<Each*>(&a.pred), static_cast<Each*>(&a.target)}) {
    arrays[count++] = each;
  }
  for (Each* each : grads) {
    if (each != nullptr && a.reduction == name_of(Reduction::kNone)) arrays[count++] = each;
  }
  return count;
}

bool is_row_major(const Boxes& array) { return leads_as_one(array, 0) && has_neighbours(array); }

}  // namespace

Boxes* unfit_for_grid(PairArguments<Described<std::int64_t>>& a,
                      const std::array<Boxes*, 2>& grads) {
  const bool are_row_major = a.pred.strides == nullptr && a.target.strides == nullptr;
  if (are_row_major && grads[0] == nullptr && grads[1] == nullptr) return nullptr;
  if (a.pred.rank == 0 || a.target.rank == 0) return nullptr;  // which is refused later
  if (a.pred_index || a.target_index) {
    if (!grid_of(a.pred)) return &a.pred;
    return grid_of(a.target) ? nullptr : &a.target;
  }
  if (a.zero_padded || a.lengths || a.offsets) return nullptr;
  std::array<Boxes*, 4> arrays = {};
  std::size_t count = on_grid(a, grads, arrays);
  for (std::size_t i = 0; i < count; ++i) {
    if (arrays[i]->rank != a.pred.rank - (i > 1 ? 1 : 0)) return nullptr;
  }
  if (binding::grid_of(arrays.data(), count)) return nullptr;
  while (is_row_major(*arrays[count - 1])) --count;
  return arrays[count - 1];
}

void set_sizes(AnyPairProblem& p, const PairArguments<Described<std::int64_t>>& a,
               const std::array<const Boxes*, 2>& grads, GradOutputs& views) {
  if (p.pairing.kind == Pairing::Kind::kIndexed) return set_lists(p, a, grads, views);
  const bool is_ragged = p.pairing.kind == Pairing::Kind::kOffsets;
  std::array<const Boxes*, 4> arrays = {};
  const std::size_t count = on_grid(a, grads, arrays);
  Grid grid;
  if (is_by_image(p.pairing.kind)) {
    grid.images = a.pred.size(0);
    grid.slots = a.pred.size(1);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t dropped = i > 1 ? 0 : 1;
      const bool is_list = is_ragged && i > 0;
      grid.strides[i] = {is_list ? 0 : stride_of(*arrays[i], dropped + 2),
                         stride_of(*arrays[i], dropped + 1)};
    }
  } else {
    grid = *binding::grid_of(arrays.data(), count);
  }
  set_boxes(p.pred, a.pred, grid, grid.strides[0]);
  set_boxes(p.target, a.target, grid, grid.strides[1]);
  if (is_ragged) {
    p.target.images = 1;
    p.target.slots = a.target.size(0);
  }
  std::size_t next = 2;
  const auto view_of = [&](const Boxes* grad) -> GradView {
    if (grad == nullptr) return {};
    if (p.reduction != Reduction::kNone) return {grad->data, 0, 0};
    const Grid::Strides& strides = grid.strides[next++];
    return {grad->data, strides.image, strides.slot};
  };
  views.loss = view_of(grads[0]);
  views.l1 = view_of(grads[1]);
}

}  // namespace boxloss::binding
