// Steps of few combinations, translated once so that each later run is faster: a table's values for a block of output
// cells are a permutation of a few vectors, computed during translation.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/dense/small_program.hpp"
#include "exec/dense/tile.hpp"

namespace elimina::ELIMINA_ISA {

template <class R>
class SmallSteps : public SmallProgram {
  using V = typename R::Value;
  using Vec = Vector<V>;
  using Index = typename IndexOf<V>::type;
  static constexpr int lanes = kLanes<V>;
  static constexpr i64 kTurn = 16;  // number of values of the eliminated variable that are handled at a time

 public:
  SmallSteps(R ring, V* arena, const double* peaks)
      : SmallProgram(lanes, kPermutes), narrow_(ring), ring_(Wide<R>::ring(ring)), arena_(arena), peaks_(peaks) {}

  Peak run(i64 number) const {
    const Step& step = steps_[number];
    const Table* tables = tables_.data() + step.first_table;
    const Window* windows = windows_.data() + step.first_window;
    const std::uint8_t* permutation = permutations_.data() + (kPermutes ? step.first_window * lanes : 0);
    Vec high{}, low = broadcast(std::numeric_limits<V>::infinity());
    for (i64 block = 0; block < step.blocks;
         ++block, windows += step.tables, permutation += kPermutes ? step.tables * lanes : 0) {
      Vec sum = broadcast(narrow_.start());
      for (i64 d = 0; d < step.domain; d += kTurn)
        turn(step, tables, windows, permutation, d, std::min(kTurn, step.domain - d), sum);
      const auto& to = blocks_[step.first_block + block];
      const Vec value = ring_.finish(sum);
      store_part(arena_ + to.out, value, int(to.cells));
      if constexpr (R::scaled) see(first_lanes(int(to.cells), value, Vec{}), high, low);
    }
    Peak peak;
    if constexpr (R::scaled) peak.see(highest(high), -highest(-low));
    return peak;
  }

 private:
  void turn(const Step& step, const Table* tables, const Window* windows, const std::uint8_t* permutation, i64 d,
            i64 count, Vec& sum) const {
    Vec values[kTurn];
    if (!step.tables) std::fill(values, values + count, broadcast(narrow_.one()));
    for (i64 t = 0; t < step.tables; ++t) {
      const V* data = arena_ + tables[t].offset + d * tables[t].domain_stride;
      V scale = V(1);
      if constexpr (R::scaled)
        if (tables[t].source >= 0) scale = message_scale<V>(peaks_[2 * tables[t].source]);
      if (t == 0) join<true>(windows[t], permutation, data, tables[t].domain_stride, count, scale, values);
      else join<false>(windows[t], permutation + t * lanes, data, tables[t].domain_stride, count, scale, values);
    }
    for (i64 i = 0; i < count; ++i) ring_.add(sum, values[i]);
  }

  template <bool first>
  void join(Window window, const std::uint8_t* permutation, const V* from, i64 stride, i64 count, V scale,
            Vec* values) const {
    const auto each = [&](auto fetch) __attribute__((always_inline)) {
      for (i64 i = 0; i < count; ++i, from += stride) {
        Vec value = fetch();
        if constexpr (R::scaled) value = value * scale;
        values[i] = first ? value : ring_.combine(values[i], value);
      }
    };
    if (!kPermutes || !window.span) {
      const i32* positions = scattered_.data() + window.first;
      return each([&] {
        V scattered[lanes];
        for (int j = 0; j < lanes; ++j) scattered[j] = from[positions[j]];
        return load(scattered);
      });
    }
    from += window.first;
    if constexpr (kPermutes) {
      const int span = window.span;
      const Vector<Index> positions = indices(permutation);
      const auto load_window = [&](int number) {
        return load_part(from + number * lanes, std::clamp(span - number * lanes, 0, lanes));
      };
      if (span <= 2 * lanes) return each([&] { return __builtin_shuffle(load_window(0), load_window(1), positions); });
      const Vector<Index> upper = positions & Index(2 * lanes);
      each([&] {
        const Vec near = __builtin_shuffle(load_window(0), load_window(1), positions),
                  far = __builtin_shuffle(load_window(2), load_window(3), positions);
        return upper ? far : near;
      });
    }
  }

  static Vector<Index> indices(const std::uint8_t* from) {
    Index positions[lanes];
    for (int j = 0; j < lanes; ++j) positions[j] = Index(from[j]);
    return load(positions);
  }

  static void see(Vec value, Vec& high, Vec& low) {
    high = value > high ? value : high;
    const Vec positive = value > Vec{} ? value : broadcast(std::numeric_limits<V>::infinity());
    low = positive < low ? positive : low;
  }

  static double highest(const Vec& values) {
    V lane_values[lanes];
    store(lane_values, values);
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) lane_values[j] = std::max(lane_values[j], lane_values[j + half]);
    return double(lane_values[0]);
  }

  R narrow_;
  decltype(Wide<R>::ring(R{})) ring_;
  V* arena_;
  const double* peaks_;
};

}  // namespace elimina::ELIMINA_ISA
