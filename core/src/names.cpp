// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <boxloss/box_loss.hpp>
#include <boxloss/class_loss.hpp>
#include <boxloss/device.hpp>
#include <boxloss/distribution_loss.hpp>
#include <boxloss/dtype.hpp>
#include <boxloss/error.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/rotated_loss.hpp>

#include "src/checks.hpp"
#include "src/message.hpp"

namespace boxloss {

const char kUnknown[] = "unknown";

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return "float64";
    case DType::kF32: return "float32";
    case DType::kF16: return "float16";
    case DType::kBF16: return "bfloat16";
    case DType::kU8: return "uint8";
    case DType::kI16: return "int16";
    case DType::kI32: return "int32";
    case DType::kI64: return "int64";
    case DType::kNone: return "none";
  }
  return kUnknown;
}

std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kU8: return 1;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16: return 2;
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kF64:
    case DType::kI64: return 8;
    case DType::kNone: return 0;
  }
  return 0;
}

const char* name_of(Pairing::Kind kind) {
  switch (kind) {
    case Pairing::Kind::kDense: return "dense";
    case Pairing::Kind::kZeroPadded: return "zero-padded";
    case Pairing::Kind::kLengths: return "lengths";
    case Pairing::Kind::kMask: return "mask";
    case Pairing::Kind::kOffsets: return "offsets";
    case Pairing::Kind::kIndexed: return "indexed";
  }
  return kUnknown;
}

const char* name_of(BoxFormat format) {
  switch (format) {
    case BoxFormat::kXyxy: return "xyxy";
    case BoxFormat::kXywh: return "xywh";
    case BoxFormat::kCxcywh: return "cxcywh";
  }
  return kUnknown;
}

const char* name_of(AngleUnit unit) {
  switch (unit) {
    case AngleUnit::kRadians: return "radians";
    case AngleUnit::kDegrees: return "degrees";
  }
  return kUnknown;
}

const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kNone: return "none";
    case Reduction::kSum: return "sum";
    case Reduction::kMean: return "mean";
  }
  return kUnknown;
}

const char* name_of(EpsMode mode) {
  switch (mode) {
    case EpsMode::kAdd: return "add";
    case EpsMode::kClamp: return "clamp";
  }
  return kUnknown;
}

const char* name_of(Extra extra) {
  switch (extra) {
    case Extra::kL1: return "l1";
    case Extra::kIou: return "iou";
  }
  return kUnknown;
}

const char* name_of(ClassTerm term) {
  switch (term) {
    case ClassTerm::kNone: return "none";
    case ClassTerm::kSoftmax: return "softmax";
    case ClassTerm::kSigmoid: return "sigmoid";
    case ClassTerm::kFocal: return "focal";
    case ClassTerm::kGiven: return "given";
  }
  return kUnknown;
}

const char* name_of(ClassLoss mode) {
  switch (mode) {
    case ClassLoss::kUnset: return "unset";
    case ClassLoss::kFocal: return "focal";
    case ClassLoss::kVarifocal: return "varifocal";
    case ClassLoss::kMal: return "mal";
    case ClassLoss::kIaBce: return "ia_bce";
    case ClassLoss::kBce: return "bce";
    case ClassLoss::kSoftmax: return "softmax";
  }
  return kUnknown;
}

const char* name_of(DistributionLoss mode) {
  switch (mode) {
    case DistributionLoss::kUnset: return "unset";
    case DistributionLoss::kFgl: return "fgl";
    case DistributionLoss::kDdf: return "ddf";
  }
  return kUnknown;
}

const char* name_of(LowQuality low_quality) {
  switch (low_quality) {
    case LowQuality::kNone: return "none";
    case LowQuality::kArgmax: return "argmax";
    case LowQuality::kOverwrite: return "overwrite";
    case LowQuality::kForce: return "force";
  }
  return kUnknown;
}

const char* name_of(Loss loss) {
  switch (loss) {
#define BOXLOSS_CASE(Formula, word) \
  case Loss::k##Formula: return word;
    BOXLOSS_FOR_EACH_LOSS(BOXLOSS_CASE)
#undef BOXLOSS_CASE
    case Loss::kUnset: return "unset";
  }
  return kUnknown;
}

const char* name_of(RotatedLoss loss) {
  switch (loss) {
#define BOXLOSS_CASE(Formula, word) \
  case RotatedLoss::k##Formula: return word;
    BOXLOSS_FOR_EACH_ROTATED_LOSS(BOXLOSS_CASE)
#undef BOXLOSS_CASE
    case RotatedLoss::kUnset: return "unset";
  }
  return kUnknown;
}

namespace {

template <class Enum>
std::string names_in(Set<Enum> losses) {
  std::string names;
  losses.for_each([&](Enum loss) {
    if (!names.empty()) names += ", ";
    names += message("'", name_of(loss), "'");
  });
  return names.empty() ? "none" : names;
}

}  // namespace

std::string names_of(Set<Loss> losses) { return names_in(losses); }
std::string names_of(Set<RotatedLoss> losses) { return names_in(losses); }

Loss loss_named(std::string_view word) {
#define BOXLOSS_RETURN_IF_NAMED(Formula, name) \
  if (word == name) return Loss::k##Formula;
  BOXLOSS_FOR_EACH_LOSS(BOXLOSS_RETURN_IF_NAMED)
#undef BOXLOSS_RETURN_IF_NAMED
  throw InvalidArgument(message("loss is '", word, "'; allowed: ", names_of(kLosses)));
}

RotatedLoss rotated_loss_named(std::string_view word) {
#define BOXLOSS_RETURN_IF_NAMED(Formula, name) \
  if (word == name) return RotatedLoss::k##Formula;
  BOXLOSS_FOR_EACH_ROTATED_LOSS(BOXLOSS_RETURN_IF_NAMED)
#undef BOXLOSS_RETURN_IF_NAMED
  throw InvalidArgument(message("loss is '", word, "'; allowed: ", names_of(kRotatedLosses)));
}

}  // namespace boxloss
