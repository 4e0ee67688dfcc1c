// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/distribution_loss.hpp"

#include "call.hpp"
#include "operations.hpp"
#include "rows.hpp"

template <>
struct Kokkos::reduction_identity<boxloss::DistributionSum>
    : boxloss::kokkos::SumFromZero<boxloss::DistributionSum> {};
template <class C>
struct Kokkos::reduction_identity<boxloss::DivergenceSums<C>>
    : boxloss::kokkos::SumFromZero<boxloss::DivergenceSums<C>> {};

/// The losses of distributions: a row is a query, whose sides its lanes take one after the other.
namespace boxloss::kokkos {
namespace {

/// `E` is what logits and teacher are of, or Any.
template <class Space, class E, class C>
struct SumDistributionLosses {
  DistributionArgs<C> args;
  C* losses;  ///< null: not wanted by row
  TeamReducer<DistributionSum, ReducedDistributionLoss<C>> reducer;
  SetTeams teams;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    sum_rows(team, reducer, teams, args, losses,
             [&](std::int64_t row, DistributionSum& own) { return add_row_of(team, row, own); });
  }

  KOKKOS_FUNCTION double add_row_of(const Team<Space>& team, std::int64_t row,
                                    DistributionSum& own) const {
    const std::int64_t target = target_of(args, row);
    if (!counts(args, target)) return 0;
    const VectorLanes<Team<Space>> lanes{team};
    double sum = 0;
    for (int side = 0; side < kSides; ++side) {
      const auto sides = plain_sides(args, row, side, Outputs<E>());
      sum += static_cast<double>(side_loss(args, row, target, side, sides, lanes));
    }
    return add_row(args, row, target, sum, own);
  }
};

template <class Space, class E, class C>
struct WriteDistributionSlopes {
  DistributionArgs<C> args;
  DistributionGrad<C> grad;
  Outputs<E> gradient;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const VectorLanes<Team<Space>> lanes{team};
    for_each_row(team, args.rows(), team.league_rank(), team.league_size(), [&](std::int64_t row) {
      const std::int64_t target = target_of(args, row), of_row = args.logits_of_query();
      if (!counts(args, target)) {
        return lanes.for_each(of_row,
                              [&](std::int64_t i) { gradient.set(row * of_row + i, C(0)); });
      }
      const RowPart<C> part = row_part(args, row, target);
      const C by = grad.by(args, row, part);
      for (int side = 0; side < kSides; ++side) {
        set_slopes(args, row, part, by, side, plain_sides(args, row, side, gradient), lanes);
      }
    });
  }
};

template <class Space>
RowShape shape_of(const DistributionLossProblem& p) {
  return row_shape<Space>(p.bins);
}

/// Calls use(E()) for the type of logits and teacher.
template <class C, class Use>
void with_element(const DistributionLossProblem& p, const Use& use) {
  if (p.mode != DistributionLoss::kFgl && p.teacher.dtype != p.logits.dtype) return use(Any());
  with_floating_type<C>(p.logits.dtype, use);
}

}  // namespace

std::size_t Workspaces::workspace_bytes(const DistributionLossProblem&) {
  return kSumsBytes<DistributionSum>;
}

template <class Space>
void Operations<Space>::distribution_loss(const DistributionLossProblem& p,
                                          const DistributionLossOutputs& outputs,
                                          const Execution& execution) {
  if (p.sets == 0) return;
  call<Space>("boxloss::distribution_loss", execution, [&](const Space& space) {
    with_compute_type(p, [&](auto compute) {
      using C = decltype(compute);
      C* const losses = p.reduction == Reduction::kNone ? static_cast<C*>(outputs.loss) : nullptr;
      with_element<C>(p, [&](auto element) {
        launch_sums<DistributionSum>("boxloss::distribution_loss", space,
                                     reduced_distribution_loss<C>(p, outputs), execution, p.sets,
                                     p.images * p.queries, shape_of<Space>(p),
                                     [&](const auto& reducer, SetTeams teams) {
                                       return SumDistributionLosses<Space, decltype(element), C>{
                                           distribution_args<C>(p), losses, reducer, teams};
                                     });
      });
    });
  });
}

template <class Space>
void Operations<Space>::distribution_loss_backward(const DistributionLossGradProblem& p,
                                                   const DistributionLossGradOutputs& outputs,
                                                   const Execution& execution) {
  call<Space>("boxloss::distribution_loss_backward", execution, [&](const Space& space) {
    with_compute_type(p, [&](auto compute) {
      using C = decltype(compute);
      with_element<C>(p, [&](auto element) {
        using E = decltype(element);
        const WriteDistributionSlopes<Space, E, C> functor{
            distribution_args<C>(p), distribution_grad<C>(p),
            boxloss::outputs<E>(outputs.logits, p.logits.dtype)};
        launch_rows("boxloss::distribution_loss_backward", space, functor.args.rows(),
                    shape_of<Space>(p), functor);
      });
    });
  });
}

template void Operations<HostSpace>::distribution_loss(const DistributionLossProblem&,
                                                       const DistributionLossOutputs&,
                                                       const Execution&);
template void Operations<HostSpace>::distribution_loss_backward(const DistributionLossGradProblem&,
                                                                const DistributionLossGradOutputs&,
                                                                const Execution&);
#if defined(BOXLOSS_KOKKOS_DEVICE)
void warm_up_distribution_loss(const DeviceSpace& space) { launch_nothing(space); }

template void Operations<DeviceSpace>::distribution_loss(const DistributionLossProblem&,
                                                         const DistributionLossOutputs&,
                                                         const Execution&);
template void Operations<DeviceSpace>::distribution_loss_backward(
    const DistributionLossGradProblem&, const DistributionLossGradOutputs&, const Execution&);
#endif

}  // namespace boxloss::kokkos
