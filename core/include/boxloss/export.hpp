// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// BOXLOSS_API marks what a shared library exports; everything else is hidden.
#if defined(BOXLOSS_SHARED)
#define BOXLOSS_API __attribute__((visibility("default")))
#else
#define BOXLOSS_API
#endif
