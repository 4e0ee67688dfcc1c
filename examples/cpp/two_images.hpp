// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
//
// The boxes that plain.cpp and gpu.cpp compute with, and how both print what they found.
#pragma once

#include <cstdint>
#include <cstdio>
#include <vector>

constexpr std::int64_t kImages = 2, kSlots = 4;

// The network predicts four boxes for each image.
const std::vector<float> kPred = {12, 8,  58, 52, 80, 25, 125, 85, 10, 5,  240, 250, 0,  0, 9,  9,
                                  33, 38, 66, 85, 1,  1,  2,   2,  50, 50, 60,  60,  70, 7, 77, 17};
// The images have three ground-truth boxes and one: rows 0 to 2 and row 3 of one list.
const std::vector<std::uint8_t> kTarget = {10, 10, 60,  50,  80, 20, 120, 90,
                                           0,  0,  255, 255, 30, 40, 70,  80};
const std::vector<std::int64_t> kOffsets = {0, 3, 4};

inline void print(const char* implementation, float loss, const std::vector<float>& gradient) {
  std::printf("%s: loss %.9g\n", implementation, loss);
  for (std::int64_t row = 0; row < kImages * kSlots; ++row) {
    const float* g = &gradient[row * 4];
    std::printf("image %d, slot %d: gradient %.9g %.9g %.9g %.9g\n", static_cast<int>(row / kSlots),
                static_cast<int>(row % kSlots), g[0], g[1], g[2], g[3]);
  }
}
