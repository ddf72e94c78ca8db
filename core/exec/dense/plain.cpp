#include "exec/dense/plain.hpp"

#include <algorithm>
#include <limits>

#include "exec/paths.hpp"

namespace elimina {

template <class R>
PlainKernels<R>::PlainKernels(const DenseRun& run, R ring)
    : StepKernels(R::scaled, elimina::matches<R>, elimina::multiplies<R>), ring_(ring),
      arena_(static_cast<V*>(run.arena)) {}

template <class R>
PlainKernels<R>::~PlainKernels() = default;

template <class R>
void PlainKernels<R>::clear(i64 first, i64 cells) {
  // Any weight gives the same zero. One is set here, because the ring may still have the last step's weight.
  const R ring = weighed(ring_, 1);
  std::fill_n(arena_ + first, cells, ring.finish(ring.start()));
}

template <class R>
Peak PlainKernels<R>::run_plain(StepView step, const double* peaks) {
  prepare(step, peaks);
  count_path(tables_ > 0 ? Path::plain : Path::plain_of_nothing);
  Peak peak;
  V* out = arena_ + step[kOut];
  const i64 axes = step[kAxes];
  digits_.assign(axes, 0);
  for (i64 cell = step.cells(); cell > 0; --cell) {
    Sum sum = ring_.start();
    for (i64 d = 0; d < step[kDomain] && tables_ > 0; ++d) ring_.add(sum, value_at(d));
    const V value = tables_ > 0 ? ring_.finish(sum) : ring_.ones(step[kDomain]);
    *out = value;
    if constexpr (R::scaled)
      peak.see(double(value), value > 0 ? double(value) : std::numeric_limits<double>::infinity());
    for (i64 axis = axes - 1; axis >= 0; --axis) {
      const bool wraps = ++digits_[axis] == step.size(axis);
      const i64 moves = wraps ? 1 - step.size(axis) : 1;
      out += moves * step.out_stride(axis);
      for (auto& source : sources_) source.data += moves * source.view.stride(axis);
      if (!wraps) break;
      digits_[axis] = 0;
    }
  }
  return peak;
}

template <class R>
i64 PlainKernels<R>::best_value(StepView step, const double* peaks, const int* assignment) {
  prepare(step, peaks);
  for (auto& source : sources_)
    for (i64 axis = 0; axis < step[kAxes]; ++axis)
      source.data += i64(assignment[step.variable(axis)]) * source.view.stride(axis);
  i64 best = 0;
  V best_value = value_at(0);
  for (i64 d = 1; d < step[kDomain] && tables_ > 0; ++d) {
    const V value = value_at(d);
    if (ring_.better(value, best_value)) best = d, best_value = value;
  }
  return best;
}

template <class R>
void PlainKernels<R>::prepare(StepView step, const double* peaks) {
  ring_ = weighed(ring_, step.weight());
  tables_ = step[kTables];
  a_ = step[kTablesA];
  b_ = a_ + step[kTablesB];
  sources_.resize(tables_);
  for (i64 t = 0; t < tables_; ++t) {
    const TableView table = step.table(t);
    V scale = V(1);
    if constexpr (R::scaled) {
      const double high = table.source() < 0 ? 0.0 : peaks[2 * table.source()];
      scale = message_scale<V>(high);
    }
    sources_[t] = {arena_ + table.offset(), table.domain_stride(), scale, table};
  }
}

template <class R>
typename R::Value PlainKernels<R>::read(const Source<V>& source, i64 index) const {
  if constexpr (R::scaled) return source.data[index] * source.scale;
  else return source.data[index];
}

template <class R>
typename R::Value PlainKernels<R>::value_at(i64 d) const {
  V a = ring_.one(), b = ring_.one();
  for (i64 t = 0; t < a_; ++t) a = ring_.combine(a, read(sources_[t], d * sources_[t].domain_stride));
  for (i64 t = a_; t < b_; ++t) b = ring_.combine(b, read(sources_[t], d * sources_[t].domain_stride));
  V value = ring_.combine(a, b);
  for (i64 t = b_; t < tables_; ++t) value = ring_.combine(value, read(sources_[t], d * sources_[t].domain_stride));
  return value;
}

#define ELIMINA_INSTANTIATE(kind, ...) template class PlainKernels<__VA_ARGS__>;
ELIMINA_TYPED_SEMIRINGS(ELIMINA_INSTANTIATE)
#undef ELIMINA_INSTANTIATE

}  // namespace elimina
