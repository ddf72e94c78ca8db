// The kernels of a semiring: each step in the way that suits its size and form.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "exec/dense/isa.hpp"
#include "exec/dense/level.hpp"
#include "exec/dense/product.hpp"
#include "exec/dense/small.hpp"
#include "exec/dense/tile.hpp"
#include "elimina/program.hpp"
#include "elimina/semiring.hpp"

namespace elimina::ELIMINA_ISA {

// Stands for what a semiring has not.
struct Nothing {
  template <class... Any>
  explicit Nothing(Any...) {}
};

template <class R>
class Kernels final : public StepKernels {
  using V = typename R::Value;
  using Sum = typename R::Sum;
  static constexpr bool has_small = Wide<R>::available;
  using Small = std::conditional_t<has_small, SmallSteps<R>, Nothing>;
  using Product = std::conditional_t<multiplies<R>, ProductStep<R>, Nothing>;
  using Level = std::conditional_t<elimina::levels<R>, LevelStep<R>, Nothing>;

 public:
  Kernels(const DenseRun& run, R ring)
      : StepKernels(R::scaled, elimina::levels<R>),
        ring_(ring),
        arena_(static_cast<V*>(run.arena)),
        small_(ring, arena_, run.peaks),
        tile_(ring, arena_),
        product_(arena_),
        level_(ring, arena_),
        spaces_(std::max(run.threads, 1)) {}

  void clear(i64 first, i64 cells) override { std::fill_n(arena_ + first, cells, ring_.finish(ring_.start())); }

  bool translates(StepView step) const override { return has_small && (step[kTablesA] == 0 || step[kTablesB] < 2); }

  i64 translate(StepView step) override {
    if constexpr (has_small) return small_.add(step);
    return -1;
  }

  Peak run_translated(i64 number) const override {
    if constexpr (has_small) return small_.run(number);
    return {};
  }

  Peak run_plain(StepView step, const double* peaks) override {
    prepare(step, peaks);
    Peak peak;
    V* out = arena_ + step[kOut];
    const i64 axes = step[kAxes];
    digits_.assign(axes, 0);
    for (i64 cell = step.cells(); cell > 0; --cell) {
      Sum sum = ring_.start();
      for (i64 d = 0; d < step[kDomain]; ++d) ring_.add(sum, value_at(d));
      const V value = ring_.finish(sum);
      *out = value;
      if constexpr (R::scaled) see(peak, &value, 1);
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

  i64 best_value(StepView step, const double* peaks, const int* assignment) override {
    prepare(step, peaks);
    for (auto& source : sources_)
      for (i64 axis = 0; axis < step[kAxes]; ++axis)
        source.data += i64(assignment[step.variable(axis)]) * source.view.stride(axis);
    i64 best = 0;
    V best_value = value_at(0);
    for (i64 d = 1; d < step[kDomain]; ++d) {
      const V value = value_at(d);
      if (ring_.better(value, best_value)) best = d, best_value = value;
    }
    return best;
  }

  i64 begin(StepView step, const double* peaks, i64 wanted_items) override {
    prepare(step, peaks);
    if constexpr (multiplies<R>)
      if ((multiplying_ = is_product(step))) return product_.begin(step, sources_, wanted_items), product_.items();
    return tile_.begin(step, sources_, wanted_items), tile_.items();
  }

  void run(i64 first, i64 last, int thread, Peak& peak) override {
    if constexpr (multiplies<R>)
      if (multiplying_) return product_.run(first, last, spaces_[thread], peak);
    tile_.run(first, last, spaces_[thread], peak);
  }

  i64 begin_level(StepView step) override {
    if constexpr (elimina::levels<R>) return level_.begin(step), level_.items();
    return 0;
  }

  void run_level(i64 first, i64 last) const override {
    if constexpr (elimina::levels<R>) level_.run(first, last);
  }

 private:
  void prepare(StepView step, const double* peaks) {
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

  V read(const Source<V>& source, i64 index) const {
    if constexpr (R::scaled)
      return source.data[index] * source.scale;
    else
      return source.data[index];
  }

  // The value of one combination where every source already points at the output cell: (lhs...) x (rhs...) x streamed...
  V value_at(i64 d) const {
    V a = ring_.one(), b = ring_.one();
    for (i64 t = 0; t < a_; ++t) a = ring_.combine(a, read(sources_[t], d * sources_[t].domain_stride));
    for (i64 t = a_; t < b_; ++t) b = ring_.combine(b, read(sources_[t], d * sources_[t].domain_stride));
    V value = ring_.combine(a, b);
    for (i64 t = b_; t < tables_; ++t) value = ring_.combine(value, read(sources_[t], d * sources_[t].domain_stride));
    return value;
  }

  R ring_;
  V* arena_;
  i64 tables_ = 0, a_ = 0, b_ = 0;
  std::vector<Source<V>> sources_;
  Small small_;
  TileStep<R> tile_;
  Product product_;
  Level level_;
  bool multiplying_ = false;
  std::vector<Workspace<R>> spaces_;
  std::vector<i64> digits_;
};

}  // namespace elimina::ELIMINA_ISA
