// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

namespace boxloss::jax_binding {

void Arguments::find(const char* name, Array& array) const {
  array.name = name;
  for (const Operand& each : operands_) {
    if (each.name != name) continue;
    array.is_given = true;
    array.rank = each.shape.size();
    array.shape = each.shape.data();
    array.data = each.data;
    array.other_dtype = each.dtype;
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kU8,
                              DType::kI16, DType::kI32, DType::kI64}) {
      if (name_of(dtype) == each.dtype) array.dtype = dtype;
    }
  }
}

void Arguments::read(const char* name, Array& array) const {
  find(name, array);
  check(array.is_given, name, " is missing");
}

void Arguments::read(const char* name, Whole& whole) const {
  Number number;
  read(name, number);
  whole = static_cast<Whole>(number);
}

void Arguments::read(const char* name, OptionalWhole& whole) const {
  OptionalNumber number;
  read(name, number);
  whole.reset();
  if (number) whole = static_cast<Whole>(*number);
}

}  // namespace boxloss::jax_binding
