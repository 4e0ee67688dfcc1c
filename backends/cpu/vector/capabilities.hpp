// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/vector/vector_code.hpp"

/// The capabilities that vector_code.cpp is compiled for, a namespace each.
namespace boxloss::native {

/// The one that the rest of the library is compiled for.
namespace baseline {
extern const VectorCode<float> kFloat;
extern const VectorCode<double> kDouble;
}  // namespace baseline

#if defined(__x86_64__)
namespace avx2 {
extern const VectorCode<float> kFloat;
extern const VectorCode<double> kDouble;
}  // namespace avx2

namespace avx512 {
extern const VectorCode<float> kFloat;
extern const VectorCode<double> kDouble;
}  // namespace avx512
#endif

}  // namespace boxloss::native
