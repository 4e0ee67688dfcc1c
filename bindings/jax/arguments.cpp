// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

namespace boxloss::jax_binding {

void Arguments::read(const char* name, Array& array) const {
  array = nullptr;
  for (const Operand& each : operands_) {
    if (each.name == name) array = &each;
  }
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

const Operand& given(const Arguments& arguments, const char* name) {
  Array array;
  arguments.read(name, array);
  check(array != nullptr, name, " is missing");
  return *array;
}

BoxFormat parse_format(const char* argument, std::string_view word) {
  return parse(argument, word, {BoxFormat::kXyxy, BoxFormat::kXywh, BoxFormat::kCxcywh});
}

EpsMode parse_eps_mode(std::string_view word) {
  return parse("eps_mode", word, {EpsMode::kAdd, EpsMode::kClamp});
}

DType dtype_of(const Operand& operand, const char* allowed) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kU8,
                            DType::kI16, DType::kI32, DType::kI64}) {
    if (name_of(dtype) == operand.dtype) return dtype;
  }
  throw Unsupported(message(operand.name, " is ", operand.dtype, "; it must be ", allowed));
}

void check_floating(const Operand& operand, DType dtype) {
  if (is_floating(dtype)) return;
  throw Unsupported(message(operand.name, " is ", operand.dtype, "; it must be ", kFloatingDTypes));
}

void check_indices(const Operand& operand, DType dtype) {
  if (dtype == DType::kI32 || dtype == DType::kI64) return;
  throw Unsupported(message(operand.name, " is ", operand.dtype, "; it must be ", kIndexDTypes));
}

ArrayView later(Array array, const char* allowed) {
  if (array == nullptr) return {};
  return {kLater, dtype_of(*array, allowed)};
}

const void* data_of(Array array) { return array == nullptr ? nullptr : array->data; }

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) {
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  }
  return "(" + text + (shape.size() == 1 ? ",)" : ")");
}

std::int64_t leading(const std::vector<std::int64_t>& shape, std::size_t dropped) {
  std::int64_t product = 1;
  for (std::size_t d = 0; d + dropped < shape.size(); ++d) product *= shape[d];
  return product;
}

void check_boxes_shape(const Operand& boxes) {
  check(!boxes.shape.empty() && boxes.shape.back() == 4, boxes.name, " has shape ",
        text_of(boxes.shape), "; its last dimension must be 4");
}

void check_shape(const Operand& operand, const std::vector<std::int64_t>& wanted, const char* why) {
  check(operand.shape == wanted, operand.name, " has shape ", text_of(operand.shape),
        "; it must be ", text_of(wanted), ", ", why);
}

}  // namespace boxloss::jax_binding
