// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The public header alone. Linked with boxloss::torch, but calls no function of it.
#include <boxloss/torch.hpp>

int main() {}
