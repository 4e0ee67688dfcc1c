// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "oracle.hpp"

/// Losses of distributions and their gradients worked out by hand.
namespace boxloss {
namespace {

using Numbers = Boxes;

/// Logits of the probabilities 1/8, 1/2 and 3/8; and -log of these.
const double kLn2 = std::log(2.0), kLn3 = std::log(3.0), kLn4 = 2 * kLn2, kLn8 = 3 * kLn2,
             kLn83 = kLn8 - kLn3;
const Numbers kLogits = {0, kLn4, kLn3}, kNans = {kNan, kNan, kNan};

Numbers times(double factor, Numbers numbers) {
  for (double& each : numbers) each *= factor;
  return numbers;
}
Numbers four(const Numbers& side) { return joined({side, side, side, side}); }

/// One image of queries whose sides have three bins each.
struct Example {
  DistributionLoss mode;
  std::vector<std::int64_t> target_index;
  Numbers logits;
  Numbers quality = {}, reference = {}, target = {}, edges = {};
  Numbers teacher = {}, confidence = {}, normalizer = {};
  double reg_scale = 4, temperature = 5;
  std::int64_t sets = 1, bins = 3;
  Reduction reduction = Reduction::kNone;

  void require(const Numbers& loss, const Numbers& gradient, const Numbers& scale) const {
    DistributionLossGradProblem p;
    p.mode = mode;
    p.sets = sets;
    p.images = 1;
    p.queries = static_cast<std::int64_t>(target_index.size()) / sets;
    p.bins = bins;
    const std::int64_t of_query = 4 * bins, of_set = p.queries * of_query;
    p.logits = {logits.data(), DType::kF64, of_set, of_set, of_query};
    p.target_index = {target_index.data(), DType::kI64};
    p.quality = view_of(quality);
    p.reduction = reduction;
    p.normalizer = view_of(normalizer);
    p.normalizer_stride = normalizer.size() > 1 ? 1 : 0;
    if (mode == DistributionLoss::kFgl) {
      p.targets = static_cast<std::int64_t>(target.size()) / 4;
      p.reference = view_of(reference);
      p.target = view_of(target);
      p.edges = view_of(edges);
      p.reg_scale = reg_scale;
    } else {
      p.teacher = {teacher.data(), DType::kF64, 0, of_set, of_query};
      p.confidence = view_of(confidence);
      p.temperature = temperature;
    }
    require_losses(p, logits.size(), distribution_loss, distribution_loss_backward, loss, gradient,
                   scale);
  }
};

/// Of two boxes and references of width and height 1/2 around (1/2, 1/2). With reg_scale 2 a side
/// at a distance of x from the centre has the offset 4 x - 1.
Example localized(const std::vector<std::int64_t>& target_index, const Numbers& logits) {
  Example example = {DistributionLoss::kFgl, target_index, logits};
  for (std::size_t i = 0; i < target_index.size(); ++i) {
    example.reference = joined({example.reference, {0.5, 0.5, 0.5, 0.5}});
  }
  example.target = {0.5, 0.5, 0.5, 1, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 4, 0.25};
  example.edges = {-1, 0, 2};
  example.reg_scale = 2;
  return example;
}

// A side in the middle bin; halfway between it and the last one; in the first and in the last bin.
const Numbers kMiddle = {0.125, -0.5, 0.375}, kBetween = {0.125, 0, -0.125},
              kFirst = {-0.875, 0.5, 0.375}, kLast = {0.125, 0.5, -0.625}, kZero = {0, 0, 0};
const double kHalfway = (kLn2 + kLn83) / 2;

TEST_CASE("fine-grained localization of single queries") {
  // Left and right have the offset 0, top and bottom 1; then left 1, right -1 and the others 0;
  // then left and right 7, which is beyond the edges, and top and bottom -1/2.
  const std::vector<std::int64_t> matches = {0, 1, 2, kNoBox, 3, kIgnored};
  const Numbers own = four(kLogits), unread = four(kNans), nothing = four(kZero);
  Example example = localized(matches, joined({own, own, own, unread, unread, unread}));
  const Numbers half_first = {-0.375, 0, 0.375};
  const double losses[] = {2 * kLn2 + 2 * kHalfway, kHalfway + 2 * kLn2 + kLn8,
                           2 * kLn83 + kLn8 + kLn2};
  const Numbers slopes[] = {joined({kMiddle, kBetween, kMiddle, kBetween}),
                            joined({kBetween, kMiddle, kFirst, kMiddle}),
                            joined({kLast, half_first, kLast, half_first})};
  example.require({losses[0], losses[1], losses[2], 0, 0, 0},
                  joined({slopes[0], slopes[1], slopes[2], nothing, nothing, nothing}), {1, 1});
  example.quality = {1, 0.5, 0, kNan, kNan, kNan};
  example.require({losses[0], losses[1] / 2, 0, 0, 0, 0},
                  joined({slopes[0], times(0.5, slopes[1]), nothing, nothing, nothing, nothing}),
                  {1, 1});
}

TEST_CASE("what fine-grained localization is divided by") {
  const Numbers slopes = joined({kMiddle, kBetween, kMiddle, kBetween}), nothing = four(kZero);
  const double loss = 2 * kLn2 + 2 * kHalfway;
  Example example = localized({0, 0, kNoBox, kNoBox}, joined(std::vector<Numbers>(16, kLogits)));
  example.sets = 2;
  example.reduction = Reduction::kSum;
  example.require({2 * loss, 0}, joined({slopes, slopes, nothing, nothing}), {1, 1, 1, 1});
  example.reduction = Reduction::kMean;  // by two matched queries, and by 1 where there are none
  const Numbers half = times(0.5, slopes), eighth = times(0.125, slopes);
  example.require({loss, 0}, joined({half, half, nothing, nothing}), {0.5, 1, 1, 1});
  example.normalizer = {8};
  example.require({loss / 4, 0}, joined({eighth, eighth, nothing, nothing}), {0.125, 1, 0, 1});
  example.normalizer = {2, 0};
  example.require({loss, 0}, joined({half, half, nothing, nothing}), {0.5, 1, 0, 1});
}

TEST_CASE("decoupled distillation") {
  // At temperature 1/2 the teacher's probabilities are those above, and the own ones 1/3.
  const Numbers teacher = four(times(0.5, kLogits)), unread = four(kNans), nothing = four(kZero);
  const Numbers flat = four({7, 7, 7});
  Example example = {DistributionLoss::kDdf,
                     {std::numeric_limits<std::int64_t>::max(), kNoBox, -7, kIgnored, 1},
                     joined({flat, flat, teacher, unread, flat})};
  example.temperature = 0.5;
  example.teacher = joined({teacher, teacher, teacher, unread, teacher});
  example.quality = {0.5, kNan, kNan, kNan, 1};
  example.confidence = {kNan, 0.25, 3, kNan, kNan};
  const double loss = (std::log(3.0 / 8) / 8 + std::log(3.0 / 2) / 2 + std::log(9.0 / 8) * 3 / 8);
  const Numbers slopes = four({(1.0 / 3 - 0.125) / 2, (1.0 / 3 - 0.5) / 2, (1.0 / 3 - 0.375) / 2});
  const auto weighed = [&](double first, double second, double last) {
    return joined(
        {times(first, slopes), times(second, slopes), nothing, nothing, times(last, slopes)});
  };
  example.require({loss / 2, loss / 4, 0, 0, loss}, weighed(0.5, 0.25, 1), {1, 1});
  example.reduction = Reduction::kSum;
  example.require({1.75 * loss}, weighed(0.5, 0.25, 1), {1, 1});
  // Eight sides of matched queries, and of others: half a mean over each.
  example.reduction = Reduction::kMean;
  example.require({1.75 * loss / 16}, weighed(0.5 / 16, 0.25 / 16, 1.0 / 16), {1.0 / 16, 1.0 / 16});
  example.target_index = {kNoBox, kNoBox, kNoBox, kIgnored, 1};
  example.confidence = {1, 0.25, 3, kNan, kNan};
  // Roots of four and twelve sides.
  const double matched = 2 / (2 + std::sqrt(12)) / 4,
               others = std::sqrt(12) / (2 + std::sqrt(12)) / 12;
  example.require({matched * loss + others * 1.25 * loss}, weighed(others, 0.25 * others, matched),
                  {matched, others});
  example.target_index = {kNoBox, kNoBox, kNoBox, kIgnored, kIgnored};
  example.require({1.25 * loss / 12}, weighed(1.0 / 12, 0.25 / 12, 0), {0, 1.0 / 12});
  example.target_index = std::vector<std::int64_t>(5, kIgnored);
  example.require({0}, weighed(0, 0, 0), {0, 0});
}

TEST_CASE("a distribution of one bin has nothing to learn") {
  Example example = {DistributionLoss::kDdf, {0, kNoBox}, {1, 2, 3, 4, 5, 6, 7, 8}};
  example.bins = 1;
  example.teacher = {8, 7, 6, 5, 4, 3, 2, 1};
  example.confidence = {1, 1};
  example.require({0, 0}, Numbers(8, 0), {1, 1});
}

}  // namespace
}  // namespace boxloss
