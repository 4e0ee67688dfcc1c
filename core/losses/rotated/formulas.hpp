// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "giou.hpp"
#include "gwd.hpp"
#include "iou.hpp"
#include "kfiou.hpp"
#include "kld.hpp"
#include "probiou.hpp"

/// The losses of rotated boxes. A formula is a struct with two functions for one pair: `loss`, and
/// `derivatives`, which gives the loss and its derivatives by both boxes' five numbers.
// clang-format off
#define BOXLOSS_FOR_EACH_ROTATED_LOSS(use) \
  use(Iou, "iou") \
  use(Giou, "giou") \
  use(Probiou, "probiou") \
  use(Kld, "kld") \
  use(Gwd, "gwd") \
  use(Kfiou, "kfiou")
// clang-format on
