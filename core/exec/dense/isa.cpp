// The kernels of steps, compiled once for each instruction set; ELIMINA_ISA names this one.
#include "exec/dense/isa.hpp"

#include "exec/dense/step.hpp"

namespace elimina::ELIMINA_ISA {
namespace {

using Made = std::unique_ptr<StepKernels>;

template <class R>
Made make(const DenseRun& run, R ring) {
  if constexpr (kHasLogSums || !weighted<R>) return std::make_unique<Kernels<R>>(run, ring);
  else return (void)ring, baseline::make_kernels(run);
}

template <class T>
Made make_float(const DenseRun& run) {
  switch (run.semiring) {
    case SemiringKind::min_sum: return make(run, MinSum<T>{T(run.parameter)});
    case SemiringKind::sum_product: return make(run, SumProduct<T>{});
    case SemiringKind::log_sum_exp: return make(run, LogSumExp<T>{});
    case SemiringKind::count: break;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<StepKernels> make_kernels(const DenseRun& run) {
  switch (run.value) {
    case ValueKind::int16: return make(run, MinSum<i16>{i16(run.integer_parameter)});
    case ValueKind::int32: return make(run, MinSum<i32>{i32(run.integer_parameter)});
    case ValueKind::int64: return make(run, MinSum<i64>{run.integer_parameter});
    case ValueKind::float32: return make_float<float>(run);
    case ValueKind::float64: return make_float<double>(run);
    case ValueKind::uint64: return make(run, Count{u64(run.integer_parameter)});
  }
  return nullptr;
}

}  // namespace elimina::ELIMINA_ISA
