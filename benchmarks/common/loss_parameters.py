# SPDX-FileCopyrightText: 2026 The boxloss authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers for losses that have some of their own."""

PARAMETERS = {
    "alpha_iou": {"alpha": 3.0},
    "nwd": {"constant": 12.8},
    "mpdiou": {"image_width": 64.0, "image_height": 48.0},
    "inner_iou": {"ratio": 0.7},
    "probiou": {"floor": 0.5},
    "kld": {"tau": 1.5, "floor": 0.5},
    "gwd": {"tau": 2.0, "floor": 0.5},
    "kfiou": {"floor": 0.5},
}
