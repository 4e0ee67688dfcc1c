// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// Linked with boxloss::torch, and calls no function of it: are the operators there?
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdio>

int main() {
  const bool is_there =
      c10::Dispatcher::singleton().findSchema({"boxloss::box_loss", ""}).has_value();
  std::puts(is_there ? "the operators are there" : "no operators");
}
