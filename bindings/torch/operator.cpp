// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "operator.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include <algorithm>
#include <memory>
#include <string>

#include "math/ceil_div.hpp"

namespace boxloss::torch_binding {
namespace {

const at::Tensor& tensor_of(const void* source) { return *static_cast<const at::Tensor*>(source); }

/// Decides by strides alone where possible: a masked tensor's number of boxes is unknown while
/// compiling.
bool has_contiguous_strides(const at::Tensor& tensor) {
  c10::SymInt expected = 1;
  for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (tensor.sym_stride(d) != expected && tensor.sym_size(d) != 1) return false;
    expected *= tensor.sym_size(d);
  }
  return true;
}

/// Whether a tensor's gradient has its strides: if they fill their memory, in any order of
/// dimensions. Otherwise it is contiguous.
bool keeps_strides(const at::Tensor& tensor) {
  return !has_contiguous_strides(tensor) && tensor.is_non_overlapping_and_dense();
}

/// As binding::lies_transposed, of symbolic strides.
bool lies_transposed(const at::Tensor& tensor) {
  return tensor.dim() >= 2 && tensor.sym_stride(-2) == 1 && tensor.sym_stride(-1) != 1;
}

/// Strides of a shape whose last two dimensions have changed places in memory.
template <class Size>
std::vector<Size> transposed_strides(std::vector<Size> shape) {
  std::swap(shape.end()[-1], shape.end()[-2]);
  std::vector<Size> strides(shape.size(), Size(1));
  for (std::size_t d = shape.size() - 1; d > 0; --d) {
    strides[d - 1] = strides[d] * (shape[d] == 0 ? Size(1) : shape[d]);
  }
  std::swap(strides.end()[-1], strides.end()[-2]);
  return strides;
}

/// A kernel as torch keeps it.
struct Boxed : c10::OperatorKernel {
  Boxed(const Operator& op, Kernel kernel) : op_(op), kernel_(kernel) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet keys, Stack* stack) {
    kernel_(op_, keys, *stack);
  }

 private:
  const Operator& op_;
  Kernel kernel_;
};

/// Kinds of options.hpp, as schemas write them.
std::string type_of(std::string_view kind) {
  constexpr std::string_view kOptional = "Optional";
  if (kind.substr(0, kOptional.size()) == kOptional) {
    return type_of(kind.substr(kOptional.size())) + "?";
  }
  if (kind == "Strided" || kind == "Packed") return "Tensor";
  if (kind == "Flag") return "bool";
  if (kind == "Word") return "str";
  if (kind == "Number") return "float";
  if (kind == "Numbers") return "float[]";
  if (kind == "PackedList") return "Tensor[]";
  if (kind == "Answer") return "Tensor(a!)?";
  return "int";
}

/// "box_loss(Tensor pred, Tensor target, str loss='giou', …) -> Tensor"
std::string schema_of(const Operator& op) {
  std::string text = std::string(op.name) + "(";
  for (std::size_t i = 0; i < op.count; ++i) {
    const binding::Parameter& each = op.parameters[i];
    text += (i == 0 ? "" : ", ") + type_of(each.kind) + " " + each.name;
    if (*each.standard != '\0') text += std::string("=") + each.standard;
  }
  if (op.results.size() == 1) return text + ") -> Tensor";
  text += ") -> (";
  for (const char* const each : op.results) {
    text += (each == op.results[0] ? "Tensor " : ", Tensor ") + std::string(each);
  }
  return text + ")";
}

/// Whether a derivative by a tensor is asked for: by a transform of torch.func, or in forward mode.
/// Elsewhere a result that needs no gradient tells.
bool is_differentiated(const c10::IValue& value) {
  if (!value.isTensor() || !value.toTensor().defined()) return false;
  const at::Tensor& tensor = value.toTensor();
  if (tensor._fw_grad(/*level=*/0).defined()) return true;
  return tensor.requires_grad() && at::GradMode::is_enabled() && inside_function_transform();
}

[[noreturn]] void refuse_function_transform(const char* function) {
  TORCH_CHECK(
      false, function,
      ": the transforms of torch.func (vmap, grad, jvp and their like) do not know it; call "
      "it outside of them");
}

}  // namespace

const at::Tensor& Operator::first_of(Stack& stack) const {
  const c10::IValue& value = arguments(stack)[first];
  if (value.isTensor()) return value.toTensor();
  const auto list = value.toListRef();
  TORCH_CHECK_VALUE(!list.empty(), function, ": ", parameters[first].name,
                    " is empty; it must have at least one tensor");
  return list[0].toTensor();
}

template <class Size>
Call<Size>::Call(const Operator& op, Stack& stack, const Way& way)
    : op_(op), stack_(stack), way_(way), first_(op.first_of(stack)) {
  if constexpr (binding::kHasNumbers<Size>) {
    implementation_ = &way.choose(first_.device());  // before memory is asked for there
    if (!first_.is_cpu()) guard_.emplace(first_.device());
  }
}

template <class Size>
void Call<Size>::set(binding::Array<Size>& array, const c10::IValue& value, bool is_packed) {
  array.name = name();
  if (value.isNone()) return;
  const at::Tensor& tensor = value.toTensor();
  check_placed(op_.function, array.name, tensor, op_.parameters[op_.first].name, &first_);
  array.is_given = true;
  array.source = &tensor;
  set_dtype(array.dtype, array.other_dtype, tensor.scalar_type());
  array.rank = static_cast<std::size_t>(tensor.dim());
  if constexpr (binding::kHasNumbers<Size>) {
    array.shape = tensor.sizes().data();
    array.data = tensor.const_data_ptr();
    const bool is_row_major = tensor.is_contiguous();
    if (is_packed && !is_row_major) return pack(array);
    if (!is_row_major) array.strides = tensor.strides().data();
    array.is_permuted = (!is_row_major || tensor.numel() == 0) && keeps_strides(tensor);
  } else {
    array.shape = tensor.sym_sizes().data();
  }
}

template <class Size>
void Call<Size>::read(std::vector<binding::PackedArray<Size>>& to) {
  for (const c10::IValue& each : next().toListRef()) {
    set(to.emplace_back(), each, /*is_packed=*/true);
  }
}

template <class Size>
void Call<Size>::read(binding::HostNumber& to) {
  const c10::IValue& value = next();
  if (value.isNone()) return;
  const at::Tensor& number = value.toTensor();
  const auto wrong = [&](const auto&... words) {
    return c10::str(op_.function, ": ", name(), words...);
  };
  TORCH_CHECK(number.is_cpu() || first_.is_meta(),
              wrong(" is on ", number.device(), "; it must be on the CPU"));
  TORCH_CHECK_TYPE(
      number.scalar_type() == at::kFloat,
      wrong(" is ", c10::getDtypeNames(number.scalar_type()).first, "; it must be float32"));
  TORCH_CHECK_VALUE(number.sym_numel() == 1,
                    wrong(" has shape ", number.sym_sizes(), "; it must be one number"));
  if constexpr (binding::kHasNumbers<Size>) {
    // A GPU can address pinned memory only.
    TORCH_CHECK_VALUE(first_.is_cpu() || number.is_pinned(),
                      wrong(" is not in pinned memory, which it must be for ",
                            op_.parameters[op_.first].name, " on ", first_.device()));
    to.data = number.mutable_data_ptr<float>();
  }
}

template <class Size>
void Call<Size>::pack(binding::Array<Size>& array) {
  if constexpr (binding::kHasNumbers<Size>) {
    const at::Tensor& copy = copies_.emplace_back(tensor_of(array.source).contiguous());
    array.shape = copy.sizes().data();
    array.strides = nullptr;
    array.data = copy.const_data_ptr();
    array.is_permuted = false;
  }
}

template <class Size>
at::Tensor Call<Size>::empty_like(const binding::Output<Size>& output,
                                  const at::TensorOptions& options, void** memory) {
  const auto strided = [&](const auto& strides) {
    if constexpr (binding::kHasNumbers<Size>) {
      return at::empty_strided(output.shape, strides, options);
    } else {
      return at::empty_strided_symint(output.shape, strides, options);
    }
  };
  at::Tensor result;
  if (output.order_of != nullptr && lies_transposed(tensor_of(output.order_of->source))) {
    result = strided(transposed_strides(output.shape));
  } else if (output.like != nullptr && keeps_strides(tensor_of(output.like->source))) {
    const at::Tensor& like = tensor_of(output.like->source);
    if constexpr (binding::kHasNumbers<Size>) {
      result = strided(like.strides());
      // Core writes a gradient with the strides of what it reads, which here is a copy.
      if (!output.like->is_permuted) {
        at::Tensor written = at::empty(output.shape, options);
        *memory = written.mutable_data_ptr();
        to_be_copied_.push_back({result, std::move(written)});
        return result;
      }
    } else {
      result = strided(like.sym_strides());
    }
  } else if constexpr (binding::kHasNumbers<Size>) {
    result = at::empty(output.shape, options);
  } else {
    result = at::empty_symint(output.shape, options);
  }
  if constexpr (binding::kHasNumbers<Size>) *memory = result.mutable_data_ptr();
  return result;
}

template <class Size>
void Call<Size>::allocate(const binding::Output<Size>* outputs, std::size_t count, void** memory,
                          std::size_t workspace_bytes) {
  const at::TensorOptions options = first_.options().pinned_memory(way_.is_pinned);
  std::size_t of_scale = 0;  // bytes in front of the workspace, if it is not kept
  for (std::size_t i = 0; i < count; ++i) {
    const binding::Output<Size>& output = outputs[i];
    const at::ScalarType type = scalar_type(output.dtype);
    if (op_.drops_scale && i == 1) {
      if constexpr (binding::kHasNumbers<Size>) {
        const std::int64_t values = c10::multiply_integers(output.shape);
        of_scale = 16 * ceil_div(values * size_of(output.dtype), 16);
      }
    } else if (!output.is_wanted) {
      results_.push_back(no_elements(first_, type));
      if constexpr (binding::kHasNumbers<Size>) memory[i] = nullptr;
    } else {
      results_.push_back(
          empty_like(output, options.dtype(type), memory == nullptr ? nullptr : memory + i));
    }
  }
  if constexpr (binding::kHasNumbers<Size>) {
    scratch_.emplace(of_scale + workspace_bytes, first_);
    if (op_.drops_scale) memory[1] = scratch_->data();
    execution_ = execution_on(first_.device());
    execution_.workspace = scratch_->data() + of_scale;
    execution_.workspace_bytes = workspace_bytes;
    execution_.is_checked = true;  // where the bytes were asked for
  }
}

template <class Size>
void Call<Size>::finish() {
  for (const Copied& each : to_be_copied_) each.result.copy_(each.written);
  torch::jit::drop(stack_, op_.count);
  for (at::Tensor& each : results_) stack_.emplace_back(std::move(each));
}

template class Call<std::int64_t>;
template class Call<c10::SymInt>;

void implement(torch::Library& m, const Operator& op, c10::DispatchKey key, Kernel kernel) {
  auto boxed = torch::CppFunction::makeFromBoxedFunctor(std::make_unique<Boxed>(op, kernel));
  m.impl(op.name, torch::dispatch(key, std::move(boxed)));
}

void define(torch::Library& m, Operator& op, std::vector<at::Tag> tags) {
  tags.push_back(at::Tag::pt2_compliant_tag);
  m.def(schema_of(op).c_str(), std::as_const(tags));
  op.handle = c10::Dispatcher::singleton().findSchemaOrThrow(op.name, "");
  const Kernel on_device = [](const Operator& its, c10::DispatchKeySet, Stack& stack) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    with_torch_errors(its.function, [&] { its.kernel(its, stack); });
  };
  // The devices that torch has a key for, and one for all others, sparse tensors too: the registry
  // says what serves a device, or an error does.
  for (const auto key :
       {c10::DispatchKey::CPU, c10::DispatchKey::CUDA, c10::DispatchKey::XPU, c10::DispatchKey::MPS,
        c10::DispatchKey::PrivateUse1, c10::DispatchKey::CompositeExplicitAutograd}) {
    implement(m, op, key, on_device);
  }
  implement(m, op, c10::DispatchKey::Meta,
            [](const Operator& its, c10::DispatchKeySet, Stack& stack) {
              with_torch_errors(its.function, [&] { its.meta(its, stack); });
            });
}

void pass_autograd(const Operator& op, c10::DispatchKeySet keys, Stack& stack) {
  op.handle->redispatchBoxed(keys & c10::after_autograd_keyset, &stack);
}

void refuse_transforms(torch::Library& m, const Operator& op) {
  implement(m, op, c10::DispatchKey::Autograd,
            [](const Operator& its, c10::DispatchKeySet keys, Stack& stack) {
              if (inside_function_transform()) refuse_function_transform(its.function);
              pass_autograd(its, keys, stack);
            });
  implement(m, op, c10::DispatchKey::FuncTorchBatched,
            [](const Operator& its, c10::DispatchKeySet, Stack&) {
              refuse_function_transform(its.function);
            });
}

void be_constant(torch::Library& m, const Operator& op) {
  implement(m, op, c10::DispatchKey::Autograd,
            [](const Operator& its, c10::DispatchKeySet keys, Stack& stack) {
              const c10::IValue* const arguments = its.arguments(stack);
              TORCH_CHECK(std::none_of(arguments, arguments + its.count, is_differentiated),
                          its.function,
                          ": it has no derivative; give it detached tensors, or call it outside of "
                          "torch.func.grad, jvp and their like");
              pass_autograd(its, keys, stack);
            });
}

}  // namespace boxloss::torch_binding
