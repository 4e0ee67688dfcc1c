// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <cfenv>
#include <exception>

namespace boxloss::jax_binding {
namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

std::string_view name_of(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::F64: return "float64";
    case ffi::DataType::F32: return "float32";
    case ffi::DataType::F16: return "float16";
    case ffi::DataType::BF16: return "bfloat16";
    case ffi::DataType::PRED: return "bool";
    case ffi::DataType::U8: return "uint8";
    case ffi::DataType::S16: return "int16";
    case ffi::DataType::S32: return "int32";
    case ffi::DataType::S64: return "int64";
    default: return "of another dtype";  // which the check while tracing has refused
  }
}

/// What an empty array points to if XLA gives it no address: it is given all the same.
alignas(16) constexpr std::byte kNoElements[16] = {};

/// XLA's call: attributes, among them the operands' names.
class Called : public Arguments {
 public:
  Called(const ffi::RemainingArgs& operands, const ffi::Dictionary& attributes)
      : attributes_(attributes) {
    Word names;
    read("operands", names);
    for (const std::string_view name : words_of(names)) {
      const ffi::AnyBuffer buffer = *operands.get<ffi::AnyBuffer>(operands_.size());
      const auto shape = buffer.dimensions();
      const void* const data = buffer.untyped_data();
      operands_.push_back({name,
                           jax_binding::name_of(buffer.element_type()),
                           {shape.begin(), shape.end()},
                           data != nullptr ? data : kNoElements});
    }
  }

  using Arguments::read;
  void read(const char* name, Flag& flag) const override { flag = attribute<Flag>(name); }
  void read(const char* name, Word& word) const override { word = attribute<Word>(name); }
  void read(const char* name, Number& number) const override { number = attribute<Number>(name); }
  void read(const char* name, OptionalNumber& number) const override {
    number.reset();
    if (attributes_.contains(name)) number = attribute<Number>(name);
  }
  void read(const char* name, Numbers& numbers) const override {
    numbers.clear();
    if (!attributes_.contains(name)) return;
    const auto given = attribute<ffi::Span<const double>>(name);
    numbers.assign(given.begin(), given.end());
  }

 private:
  template <class Type>
  Type attribute(const char* name) const {
    const ffi::ErrorOr<Type> value = attributes_.get<Type>(name);
    check(value.has_value(), name, " is missing");
    return *value;
  }

  const ffi::Dictionary& attributes_;
};

class WhileTracing : public Arguments {
 public:
  explicit WhileTracing(const Traced& traced) : traced_(traced) {
    for (std::int64_t i = 0; i < traced.array_count; ++i) {
      const Traced::Array& each = traced.arrays[i];
      operands_.push_back(
          {each.name, each.dtype, {each.shape, each.shape + each.dimensions}, nullptr});
    }
  }

  using Arguments::read;
  void read(const char* name, Flag& flag) const override { flag = option(name).number != 0; }
  void read(const char* name, Word& word) const override {
    const char* const given = option(name).word;
    check(given != nullptr, name, " is a number; it must be a string");
    word = given;
  }
  void read(const char* name, Number& number) const override { number = option(name).number; }
  void read(const char* name, OptionalNumber& number) const override {
    number.reset();
    if (const Traced::Option* found = find(name)) number = found->number;
  }
  void read(const char* name, Numbers& numbers) const override {
    numbers.clear();
    for (std::int64_t i = 0; i < traced_.option_count; ++i) {
      if (traced_.options[i].name == std::string_view(name)) {
        numbers.push_back(traced_.options[i].number);
      }
    }
  }

 private:
  const Traced::Option* find(std::string_view name) const {
    const Traced::Option* const end = traced_.options + traced_.option_count;
    const auto is_it = [name](const Traced::Option& each) { return each.name == name; };
    const Traced::Option* const found = std::find_if(traced_.options, end, is_it);
    return found == end ? nullptr : found;
  }
  const Traced::Option& option(const char* name) const {
    const Traced::Option* const found = find(name);
    check(found != nullptr, name, " is missing");
    return *found;
  }

  const Traced& traced_;
};

/// While it lives, subnormal numbers are not 0, which they are in XLA's threads: bits are those of
/// other frameworks. Threads that start meanwhile have it from their parent.
class WithSubnormals {
 public:
  WithSubnormals() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~WithSubnormals() { std::fesetenv(&before_); }
  WithSubnormals(const WithSubnormals&) = delete;
  WithSubnormals& operator=(const WithSubnormals&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace

void* Call::result(std::string_view name) const {
  for (const Result& each : results) {
    if (each.name == name) return each.data;
  }
  return nullptr;
}

ffi::Error run_on(std::initializer_list<Device> devices, const Execution& execution, Run run,
                  const ffi::RemainingArgs& operands, const ffi::RemainingRets& results,
                  const ffi::Dictionary& attributes) {
  try {
    const Called arguments(operands, attributes);
    Call call{arguments, implementation_for(devices), {}, execution};
    std::string_view names;
    arguments.read("results", names);
    for (const std::string_view name : words_of(names)) {
      ffi::Result<ffi::AnyBuffer> result = *results.get<ffi::AnyBuffer>(call.results.size());
      call.results.push_back({name, result->untyped_data()});
      if (name != "workspace") continue;
      call.execution.workspace = result->untyped_data();
      call.execution.workspace_bytes = result->size_bytes();
    }
    const WithSubnormals scope;
    run(call);
    return ffi::Error::Success();
  } catch (const InvalidArgument& error) {
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, error.what());
  } catch (const Unsupported& error) {
    return ffi::Error(ffi::ErrorCode::kUnimplemented, error.what());
  } catch (const std::exception& error) {
    return ffi::Error(ffi::ErrorCode::kInternal, error.what());
  }
}

void Results::set(std::size_t i, const char* name, const binding::Output<std::int64_t>& output) {
  check(output.shape.size() <= std::size(arrays[i].shape), name, " would have ",
        output.shape.size(), " dimensions; it can have ", std::size(arrays[i].shape));
  arrays[i].name = name;
  arrays[i].dtype = boxloss::name_of(output.dtype);
  std::copy(output.shape.begin(), output.shape.end(), arrays[i].shape);
  arrays[i].dimensions = static_cast<std::int64_t>(output.shape.size());
}

const char* trace_call(Traced* traced, Trace trace) {
  thread_local std::string problem;
  const auto failed = [&](Traced::Kind kind, const std::exception& error) {
    problem = error.what();
    traced->error = kind;
    return problem.c_str();
  };
  try {
    const WhileTracing arguments(*traced);
    std::size_t most = 0;
    for (const Implementation* each : implementations()) {
      most = std::max(most, trace(arguments, *each, traced->results));
    }
    traced->workspace_bytes = static_cast<std::int64_t>(most);
    return nullptr;
  } catch (const InvalidArgument& error) {
    return failed(Traced::kValueError, error);
  } catch (const Unsupported& error) {
    return failed(Traced::kTypeError, error);
  } catch (const std::exception& error) {
    return failed(Traced::kRuntimeError, error);
  }
}

}  // namespace boxloss::jax_binding

/// The minor number of XLA's interface that this was compiled for.
extern "C" __attribute__((visibility("default"))) const int boxloss_jax_ffi_minor =
    XLA_FFI_API_MINOR;
static_assert(XLA_FFI_API_MAJOR == 0, "another interface than the one that this is written for");
