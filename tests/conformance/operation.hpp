// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "array.hpp"
#include "cases.hpp"
#include "check.hpp"
#include "random.hpp"

/// What the struct of every operation is made of: see operations.hpp.
