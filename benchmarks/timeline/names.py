# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Whose time it is."""

LOOP, EAGER, OURS = NAMES = ("loop", "mask", "boxloss-ragged")  # of face_detector's variants
NOTHING = "nothing, in C++"  # of loss_only's host_losses
