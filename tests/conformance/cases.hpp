// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/loss.hpp>
#include <boxloss/rotated_loss.hpp>
#include <boxloss/view.hpp>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "random.hpp"

/// What the tables of all operations are made of. A named case is for what random mixes have
/// seldom: sizes, indices and numbers at their limits, ties and NaN by the hundred, and for what
/// further cases start from.
namespace boxloss::conformance {

/// How boxes lie in memory.
enum class Layout {
  kPacked,
  kWide,           ///< the first four columns of seven
  kGaps,           ///< rows between one image and the next that belong to nobody
  kOddGaps,        ///< the same, but no whole rows: only the first image is aligned
  kShifted,        ///< packed, but from the second element on: aligned to one element only
  kOneImage,       ///< the same boxes for every image: image stride 0
  kOneBox,         ///< one box for all slots: both strides 0
  kTransposed,     ///< image after image of slot 0, then of slot 1
  kPlanes,         ///< coordinate after coordinate of each image, as a convolution gives them
  kCommonPlanes,   ///< coordinate after coordinate of all images
  kApart,          ///< the same, with gaps between neighbours
  kOneCoordinate,  ///< one number for all four: coordinate stride 0
};

/// What the boxes are like.
enum class Values {
  kPlain,    ///< real coordinates that often overlap, never tie
  kKinks,    ///< small integers: ties, touching, identical, degenerate and inverted boxes abound
  kSpecial,  ///< kinks, with NaN and infinity among counted boxes, weights and incoming gradients
};

struct Operand {
  DType dtype;
  BoxFormat format;
  Layout layout;
};

struct CaseEps {
  double value;
  EpsMode mode;
};

/// The words that tables are written in, and draws of them.
namespace words {

constexpr DType f64 = DType::kF64, f32 = DType::kF32, f16 = DType::kF16, bf16 = DType::kBF16,
                u8 = DType::kU8, i16 = DType::kI16, i32 = DType::kI32, i64 = DType::kI64;
constexpr BoxFormat xyxy = BoxFormat::kXyxy, xywh = BoxFormat::kXywh, cxcywh = BoxFormat::kCxcywh;
constexpr Layout packed = Layout::kPacked, wide = Layout::kWide, gaps = Layout::kGaps,
                 odd_gaps = Layout::kOddGaps, shifted = Layout::kShifted,
                 one_image = Layout::kOneImage, one_box = Layout::kOneBox,
                 transposed = Layout::kTransposed, planes = Layout::kPlanes,
                 common_planes = Layout::kCommonPlanes, apart = Layout::kApart,
                 one_coordinate = Layout::kOneCoordinate;
constexpr CaseEps add = {1e-7, EpsMode::kAdd}, clamp = {1e-7, EpsMode::kClamp},
                  add_0 = {0, EpsMode::kAdd}, clamp_0 = {0, EpsMode::kClamp},
                  // In the middle of the kinks' areas, some of which then equal eps.
    clamp_4 = {4, EpsMode::kClamp};
constexpr Values plain = Values::kPlain, kinks = Values::kKinks, special = Values::kSpecial;

inline DType any_floating(Random& random) {
  return random.pick(std::vector<DType>{f64, f32, f16, bf16});
}
inline DType any_dtype(Random& random) {
  return random.pick(std::vector<DType>{f64, f32, f16, bf16, u8, i16, i32, i64});
}
inline DType any_index(Random& random) { return random.pick(std::vector<DType>{i32, i64}); }
inline BoxFormat any_format(Random& random) {
  return random.pick(std::vector<BoxFormat>{xyxy, xywh, cxcywh});
}
/// One in two is packed, for which there are kernels of their own.
inline Layout any_layout(Random& random) {
  if (random.chance(0.5)) return packed;
  return random.pick(std::vector<Layout>{wide, gaps, odd_gaps, shifted, one_image, one_box,
                                         transposed, planes, common_planes, apart});
}

}  // namespace words

/// For messages: an enumerator's name or, if it has none, its number.
template <class T>
auto told(const T& value, int) -> decltype(std::string(name_of(value))) {
  return name_of(value);
}
template <class T>
std::string told(const T& value, long) {
  std::ostringstream text;
  if constexpr (std::is_enum_v<T>) {
    text << static_cast<int>(value);
  } else {
    text << value;
  }
  return text.str();
}
template <class T>
std::string told(const std::optional<T>& value, int) {
  return value ? told(*value, 0) : "none";
}

template <class... Parts>
std::string in_words(const Parts&... parts) {
  return (... + (told(parts, 0) + " "));
}

inline std::string told(const Operand& operand, int) {
  return in_words(operand.dtype, operand.format, operand.layout);
}

/// Cases that run together: `-c NAME` runs them alone.
template <class Case>
struct CaseGroup {
  std::string name;
  std::vector<Case> cases;
};

/// The group that is enough in an emulator and with sanitizers: see tests/CMakeLists.txt.
constexpr const char* kEveryCase = "every case";

template <class Enum>
std::vector<Enum> members_of(Set<Enum> set) {
  std::vector<Enum> all;
  set.for_each([&](Enum member) { all.push_back(member); });
  return all;
}

template <class Enum = Loss>
std::vector<Enum> losses() {
  if constexpr (std::is_same_v<Enum, Loss>) return members_of(kLosses);
  if constexpr (std::is_same_v<Enum, RotatedLoss>) return members_of(kRotatedLosses);
}

/// A table of cases that have a `loss`, with each of them: every case with GIoU, which has kernels
/// of its own, each with one of the others in turn, since what is computed does not depend on where
/// boxes lie, and with all of them where the values have kinks, which are each loss's own.
template <class Case>
std::vector<CaseGroup<Case>> with_losses(const std::vector<Case>& table) {
  using Enum = decltype(Case::loss);
  const std::vector<Enum> all = losses<Enum>();
  std::vector<CaseGroup<Case>> groups;
  for (const Enum loss : all) {
    const bool is_giou = loss == Enum::kGiou;
    CaseGroup<Case> group{is_giou ? kEveryCase : name_of(loss), {}};
    for (std::size_t i = 0; i < table.size(); ++i) {
      const Enum turn = all[i % all.size()];
      const bool is_due = loss == (turn == Enum::kGiou ? Enum::kIou : turn);
      if (!is_giou && table[i].values == Values::kPlain && !is_due) continue;
      group.cases.push_back(table[i]);
      group.cases.back().loss = loss;
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

template <class Case>
Case case_named(const std::vector<Case>& table, std::string_view name) {
  for (const Case& c : table) {
    if (c.name == name) return c;
  }
  throw std::out_of_range("no case is named " + std::string(name));
}

template <class Case>
struct MoreCases {
  std::vector<Case> further;   ///< for one loss only: too much work, or indices out of range
  std::vector<Case> wild;      ///< inputs whose results mean nothing
  std::vector<Case> for_bits;  ///< of several tasks, whose bits are the same every time
};

/// Of the table, with another shape and other indices.
template <class Case>
Case changed(const std::vector<Case>& table, std::string_view name,
             const decltype(Case::shape)& shape, const std::vector<std::int64_t>& indices = {}) {
  Case c = case_named(table, name);
  c.shape = shape;
  c.indices = indices;
  return c;
}

/// Each of the names with each of the indices.
template <class Case>
void add_changed(std::vector<Case>& list, const std::vector<Case>& table,
                 const std::vector<const char*>& names, const decltype(Case::shape)& shape,
                 const std::vector<std::vector<std::int64_t>>& indices) {
  for (const char* name : names) {
    for (const auto& each : indices) list.push_back(changed(table, name, shape, each));
  }
}

}  // namespace boxloss::conformance
