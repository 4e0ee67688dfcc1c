// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boxloss/assign.hpp>
#include <boxloss/box_loss.hpp>
#include <boxloss/class_loss.hpp>
#include <boxloss/collate_targets.hpp>
#include <boxloss/device.hpp>
#include <boxloss/distribution_loss.hpp>
#include <boxloss/dtype.hpp>
#include <boxloss/error.hpp>
#include <boxloss/execution.hpp>
#include <boxloss/loss.hpp>
#include <boxloss/matching_cost.hpp>
#include <boxloss/max_iou_match.hpp>
#include <boxloss/registry.hpp>
#include <boxloss/rotated_box_loss.hpp>
#include <boxloss/rotated_loss.hpp>
#include <boxloss/set.hpp>
#include <boxloss/task_aligned_match.hpp>
#include <boxloss/view.hpp>
