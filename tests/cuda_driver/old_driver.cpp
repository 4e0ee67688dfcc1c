// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0

/// All that the runtime asks a driver that is too old.
extern "C" int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
