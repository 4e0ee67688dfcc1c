// SPDX-FileCopyrightText: 2026 The boxloss authors
// SPDX-License-Identifier: Apache-2.0
#include "dispatch/class_loss.hpp"

#include "call.hpp"
#include "operations.hpp"
#include "rows.hpp"

template <>
struct Kokkos::reduction_identity<boxloss::ClassSum>
    : boxloss::kokkos::SumFromZero<boxloss::ClassSum> {};

/// The class losses: a row is the classes of a query.
namespace boxloss::kokkos {
namespace {

template <class Space, class E, class C>
struct SumClassLosses {
  ClassArgs<C> args;
  C* losses;  ///< null: not wanted by row
  TeamReducer<ClassSum, ReducedClassLoss<C>> reducer;
  SetTeams teams;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const VectorLanes<Team<Space>> lanes{team};
    sum_rows(team, reducer, teams, args, losses, [&](std::int64_t row, ClassSum& own) {
      const double loss = row_loss<E>(args, row, lanes);
      own += {loss, share_of(args, row)};
      return loss;
    });
  }
};

template <class Space, class E, class C>
struct WriteClassSlopes {
  ClassArgs<C> args;
  ClassGrad<C> grad;
  E* gradient;

  KOKKOS_FUNCTION void operator()(const Team<Space>& team) const {
    const VectorLanes<Team<Space>> lanes{team};
    for_each_row(team, args.rows(), team.league_rank(), team.league_size(),
                 [&](std::int64_t row) { write_row_slopes(args, row, grad, gradient, lanes); });
  }
};

/// Where queries are neighbours, not classes, a query has one lane.
template <class Space>
RowShape shape_of(const ClassLossProblem& p) {
  return row_shape<Space>(p.logits.class_stride == 1 ? p.classes : 1);
}

}  // namespace

std::size_t Workspaces::workspace_bytes(const ClassLossProblem&) { return kSumsBytes<ClassSum>; }

template <class Space>
void Operations<Space>::class_loss(const ClassLossProblem& p, const ClassLossOutputs& outputs,
                                   const Execution& execution) {
  if (p.sets == 0) return;
  call<Space>("boxloss::class_loss", execution, [&](const Space& space) {
    with_compute_type(p, [&](auto compute) {
      using C = decltype(compute);
      C* const losses = p.reduction == Reduction::kNone ? static_cast<C*>(outputs.loss) : nullptr;
      with_floating_type<C>(p.logits.dtype, [&](auto element) {
        launch_sums<ClassSum>("boxloss::class_loss", space, reduced_class_loss<C>(p, outputs),
                              execution, p.sets, p.images * p.queries, shape_of<Space>(p),
                              [&](const auto& reducer, SetTeams teams) {
                                return SumClassLosses<Space, decltype(element), C>{
                                    class_args<C>(p), losses, reducer, teams};
                              });
      });
    });
  });
}

template <class Space>
void Operations<Space>::class_loss_backward(const ClassLossGradProblem& p,
                                            const ClassLossGradOutputs& outputs,
                                            const Execution& execution) {
  call<Space>("boxloss::class_loss_backward", execution, [&](const Space& space) {
    with_compute_type(p, [&](auto compute) {
      using C = decltype(compute);
      with_floating_type<C>(p.logits.dtype, [&](auto element) {
        using E = decltype(element);
        const WriteClassSlopes<Space, E, C> functor{class_args<C>(p), class_grad<C>(p),
                                                    static_cast<E*>(outputs.logits)};
        launch_rows("boxloss::class_loss_backward", space, functor.args.rows(), shape_of<Space>(p),
                    functor);
      });
    });
  });
}

template void Operations<HostSpace>::class_loss(const ClassLossProblem&, const ClassLossOutputs&,
                                                const Execution&);
template void Operations<HostSpace>::class_loss_backward(const ClassLossGradProblem&,
                                                         const ClassLossGradOutputs&,
                                                         const Execution&);
#if defined(BOXLOSS_KOKKOS_DEVICE)
void warm_up_class_loss(const DeviceSpace& space) { launch_nothing(space); }

template void Operations<DeviceSpace>::class_loss(const ClassLossProblem&, const ClassLossOutputs&,
                                                  const Execution&);
template void Operations<DeviceSpace>::class_loss_backward(const ClassLossGradProblem&,
                                                           const ClassLossGradOutputs&,
                                                           const Execution&);
#endif

}  // namespace boxloss::kokkos
