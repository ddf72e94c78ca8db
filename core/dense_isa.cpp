// The dense executor, compiled once for each instruction set; ELIMINA_ISA names this one.
#include "dense_isa.hpp"

#include "dense_step.hpp"

namespace elimina::ELIMINA_ISA {
namespace {

template <class R>
bool run_ring(const DenseRun& run, R ring) {
  Executor<R> executor(run, ring);
  if (!executor.eliminate()) return false;
  if (run.assignment) executor.decode();
  return true;
}

template <class T>
bool run_float(const DenseRun& run) {
  const T forbidden = T(run.parameter);
  switch (run.semiring) {
    case SemiringKind::min_sum: return run_ring(run, MinSum<T>{forbidden});
    case SemiringKind::max_sum: return run_ring(run, MaxSum<T>{forbidden});
    case SemiringKind::max_product: return run_ring(run, MaxProduct<T>{});
    case SemiringKind::sum_product: return run_ring(run, SumProduct<T>{});
    case SemiringKind::log_sum_exp: return run_ring(run, LogSumExp<T>{});
    case SemiringKind::count: break;
  }
  return false;
}

}  // namespace

bool run_dense(const DenseRun& run) {
  switch (run.value) {
    case ValueKind::int16: return run_ring(run, MinSum<i16>{i16(run.integer_parameter)});
    case ValueKind::int32: return run_ring(run, MinSum<i32>{i32(run.integer_parameter)});
    case ValueKind::int64: return run_ring(run, MinSum<i64>{run.integer_parameter});
    case ValueKind::float32: return run_float<float>(run);
    case ValueKind::float64: return run_float<double>(run);
    case ValueKind::uint64: return run_ring(run, Count{u64(run.integer_parameter)});
  }
  return false;
}

}  // namespace elimina::ELIMINA_ISA
