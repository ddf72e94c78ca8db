// The kernels of a semiring: each step uses the one for its size and form.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "elimina/program.hpp"
#include "elimina/semiring.hpp"
#include "exec/dense/isa.hpp"
#include "exec/dense/matching.hpp"
#include "exec/dense/plain.hpp"
#include "exec/dense/product.hpp"
#include "exec/dense/small.hpp"
#include "exec/dense/tile.hpp"

namespace elimina::ELIMINA_ISA {

// Placeholder for operations that a semiring lacks.
struct Nothing {
  template <class... Any>
  explicit Nothing(Any...) {}
};

template <class R>
class Kernels final : public PlainKernels<R> {
  using Plain = PlainKernels<R>;
  using Plain::arena_, Plain::sources_;
  static constexpr bool has_small = Wide<R>::available;
  using Small = std::conditional_t<has_small, SmallSteps<R>, Nothing>;
  using Product = std::conditional_t<elimina::multiplies<R>, ProductStep<R>, Nothing>;
  using Matching = std::conditional_t<elimina::matches<R>, MatchingStep<R>, Nothing>;

 public:
  Kernels(const DenseRun& run, R ring)
      : Plain(run, ring), small_(ring, arena_, run.peaks), tile_(ring, arena_), product_(arena_),
        matching_(ring, arena_), spaces_(std::max(run.threads, 1)) {}

  bool translates(StepView step) const override { return has_small && (step[kTablesA] == 0 || step[kTablesB] < 2); }

  i64 translate(StepView step) override {
    if constexpr (has_small) return small_.add(step);
    return -1;
  }

  Peak run_translated(i64 number) const override {
    if constexpr (has_small) return small_.run(number);
    return {};
  }

  i64 begin(StepView step, const double* peaks, i64 wanted_items) override {
    this->prepare(step, peaks);
    if constexpr (elimina::multiplies<R>)
      if ((multiplying_ = is_product(step))) return product_.begin(step, sources_, wanted_items), product_.items();
    return tile_.begin(step, sources_, wanted_items), tile_.items();
  }

  void run(i64 first, i64 last, int thread, Peak& peak) override {
    if constexpr (elimina::multiplies<R>)
      if (multiplying_) return product_.run(first, last, spaces_[thread], peak);
    tile_.run(first, last, spaces_[thread], peak);
  }

  i64 begin_matching(StepView step) override {
    if constexpr (elimina::matches<R>) return matching_.begin(step), matching_.items();
    return 0;
  }

  void run_matching(i64 first, i64 last) const override {
    if constexpr (elimina::matches<R>) matching_.run(first, last);
  }

 private:
  Small small_;
  TileStep<R> tile_;
  Product product_;
  Matching matching_;
  bool multiplying_ = false;
  std::vector<Workspace<R>> spaces_;
};

}  // namespace elimina::ELIMINA_ISA
