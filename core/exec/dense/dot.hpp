// Computes output cells of a step whose tables are contiguous in the eliminated variable: the lanes of a vector are
// values of the eliminated variable. Cells are computed one after another. For a block of cells, the lanes of all
// partial sums are then added up together.
#pragma once
#include <algorithm>
#include <utility>

#include "exec/dense/vector.hpp"

namespace elimina::ELIMINA_ISA {

// Operands of a run of cells. `a`: the lhs, padded to whole vectors. `tables`: the rhs, if there is one, then the
// streamed tables.
template <class V>
struct Dot {
  const V* a;
  i64 domain;
  i64 streamed;
  const V* tables[kMostStreamed];
  const i32* offsets[kMostStreamed];  // for each table, the offset of each cell of the run
  bool varies[kMostStreamed];         // for each table, true if it has the eliminated variable
  V scale[kMostStreamed];
};

template <class R, int fixed_streamed>
class DotKernel {
  using V = typename R::Value;
  using Vec = Vector<V>;
  static constexpr int lanes = kLanes<V>;

 public:
  DotKernel(R ring, const Dot<V>& dot) : narrow_(ring), ring_(Wide<R>::ring(ring)), dot_(dot) {}

  void run(i64 cells, V* __restrict out) const {
    if (dot_.domain <= lanes) blocks<true>(cells, out);
    else blocks<false>(cells, out);
  }

 private:
  template <bool one_vector>
  void blocks(i64 cells, V* __restrict out) const {
    for (i64 i = 0; i < cells; i += lanes) {
      Vec sums[lanes];
      for (int j = 0; j < lanes; ++j) sums[j] = cell<one_vector>(std::min(i + j, cells - 1));
      if constexpr (kPermutes) fold<1>(sums);
      else sums[0] = folded_lanes(sums);
      const Vec value = ring_.finish(sums[0]);
      if (i + lanes <= cells) store(out + i, value);
      else store_part(out + i, value, int(cells - i));
    }
  }

  template <bool one_vector>
  __attribute__((always_inline)) Vec cell(i64 i) const {
    const i64 count = fixed_streamed >= 0 ? fixed_streamed : dot_.streamed;
    const V* from[fixed_streamed >= 0 ? fixed_streamed + 1 : kMostStreamed];
    for (i64 t = 0; t < count; ++t) from[t] = dot_.tables[t] + dot_.offsets[t][i];
    Vec sum = broadcast(narrow_.start());
    i64 d = 0;
    if constexpr (!one_vector)
      for (; d + lanes <= dot_.domain; d += lanes) ring_.add(sum, values<false>(from, count, d));
    if (one_vector || d < dot_.domain) ring_.add(sum, values<true>(from, count, d));
    return sum;
  }

  template <bool is_partial>
  __attribute__((always_inline)) Vec values(const V* const* from, i64 count, i64 d) const {
    const int remaining = int(dot_.domain - d);
    Vec value = load(dot_.a + d);
#pragma GCC unroll 4
    for (i64 t = 0; t < count; ++t) {
      Vec next = !dot_.varies[t] ? broadcast(*from[t])
                 : is_partial    ? load_part(from[t] + d, remaining)
                                 : load(from[t] + d);
      if constexpr (R::scaled) next = next * dot_.scale[t];
      value = ring_.combine(value, next);
    }
    if constexpr (is_partial) value = first_lanes(remaining, value, broadcast(narrow_.start()));
    return value;
  }

  Vec folded_lanes(const Vec* sums) const {
    V lane_values[lanes];
    for (int j = 0; j < lanes; ++j) {
      V lane[lanes];
      store(lane, sums[j]);
      for (int half = lanes / 2; half > 0; half /= 2)
        for (int l = 0; l < half; ++l) narrow_.add(lane[l], lane[l + half]);
      lane_values[j] = lane[0];
    }
    return load(lane_values);
  }

  template <int g>
  __attribute__((always_inline)) void fold(Vec* sums) const {
    if constexpr (g < lanes) {
#pragma GCC unroll 16
      for (int j = 0; j < lanes / (2 * g); ++j)
        sums[j] = halves<g>(sums[2 * j], sums[2 * j + 1], std::make_index_sequence<lanes>{});
      fold<2 * g>(sums);
    }
  }

  // Adds neighbouring groups of g lanes; groups of a and of b alternate in the result.
  template <int g, std::size_t... lane>
  __attribute__((always_inline)) Vec halves(Vec a, Vec b, std::index_sequence<lane...>) const {
    Vec sum = __builtin_shufflevector(a, b, ((lane & g) ? lanes + lane - g : lane)...);
    ring_.add(sum, __builtin_shufflevector(a, b, ((lane & g) ? lanes + lane : lane + g)...));
    return sum;
  }

  R narrow_;
  decltype(Wide<R>::ring(R{})) ring_;
  const Dot<V>& dot_;
};

template <class R>
void run_dot(R ring, const Dot<typename R::Value>& dot, i64 cells, typename R::Value* out) {
  switch (dot.streamed) {
    case 1: return DotKernel<R, 1>(ring, dot).run(cells, out);
    case 2: return DotKernel<R, 2>(ring, dot).run(cells, out);
    case 3: return DotKernel<R, 3>(ring, dot).run(cells, out);
    default: return DotKernel<R, -1>(ring, dot).run(cells, out);
  }
}

}  // namespace elimina::ELIMINA_ISA
