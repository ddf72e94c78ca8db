// Steps of few combinations, translated once so that running them again costs little: a table's values for a block of output cells
// are a permutation of a few vectors, found when the program is translated.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "exec/dense/tile.hpp"

namespace elimina::ELIMINA_ISA {

// Translated steps; `lanes` values make a vector.
template <int lanes>
class SmallProgram {
 public:
  // Returns the step's number here.
  i64 add(StepView step) {
    const i64 cells = step.cells(), axes = step[kAxes], tables = step[kTables];
    steps_.push_back({step[kDomain], tables, i64(tables_.size()), i64(windows_.size()), i64(blocks_.size()), 0});
    out_.resize(cells);
    fill_offsets(out_.data(), step, 0, axes, [&](i64 axis) { return step.out_stride(axis); });
    offsets_.resize(cells * tables);
    for (i64 t = 0; t < tables; ++t) {
      const TableView table = step.table(t);
      tables_.push_back({table.offset(), table.domain_stride(), table.source()});
      fill_offsets(offsets_.data() + t * cells, step, 0, axes, [&](i64 axis) { return table.stride(axis); });
    }
    for (i64 cell = 0, count; cell < cells; cell += count) {
      for (count = 1; count < lanes && cell + count < cells && out_[cell + count] == out_[cell] + count;) ++count;
      blocks_.push_back({step[kOut] + out_[cell], count});
      for (i64 t = 0; t < tables; ++t) add_window(offsets_.data() + t * cells + cell, int(count));
    }
    steps_.back().blocks = i64(blocks_.size()) - steps_.back().first_block;
    return i64(steps_.size()) - 1;
  }

 protected:
  struct Step {
    i64 domain, tables, first_table, first_window, first_block, blocks;
  };
  struct Table {
    i64 offset, domain_stride, source;
  };
  struct Block {
    i64 out, cells;
  };
  // Places of a block's cells in a table: from `first` on, `places` in the `span` elements there; or (span 0: they are too far
  // apart) at the offsets in `scattered_` from `first` on.
  struct Window {
    i32 first;
    std::uint8_t span;
    std::uint8_t places[lanes];
  };

  std::vector<Step> steps_;
  std::vector<Table> tables_;
  std::vector<Window> windows_;
  std::vector<Block> blocks_;
  std::vector<i32> scattered_;

 private:
  void add_window(const i32* offsets, int count) {
    const auto [low, high] = std::minmax_element(offsets, offsets + count);
    Window& found = windows_.emplace_back();
    if (kPermutes && *high - *low < kWindows * lanes) {
      found.first = *low;
      found.span = std::uint8_t(*high - *low + 1);
      for (int j = 0; j < lanes; ++j) found.places[j] = std::uint8_t(offsets[std::min(j, count - 1)] - *low);
    } else {
      found.first = i32(scattered_.size());
      for (int j = 0; j < lanes; ++j) scattered_.push_back(offsets[std::min(j, count - 1)]);
    }
  }

  std::vector<i32> out_, offsets_;
};

template <class R>
class SmallSteps : public SmallProgram<kLanes<typename R::Value>> {
  using V = typename R::Value;
  using Vec = Vector<V>;
  using Index = typename IndexOf<V>::type;
  static constexpr int lanes = kLanes<V>;
  using Program = SmallProgram<lanes>;
  using Step = typename Program::Step;
  using Table = typename Program::Table;
  using Window = typename Program::Window;
  static constexpr i64 kTurn = 16;  // values of the eliminated variable at a time

 public:
  SmallSteps(R ring, V* arena, const double* peaks) : narrow_(ring), ring_(Wide<R>::ring(ring)), arena_(arena), peaks_(peaks) {}

  Peak run(i64 number) const {
    const Step& step = this->steps_[number];
    const Table* tables = this->tables_.data() + step.first_table;
    const Window* windows = this->windows_.data() + step.first_window;
    Vec high{}, low = broadcast(std::numeric_limits<V>::infinity());
    for (i64 block = 0; block < step.blocks; ++block, windows += step.tables) {
      Vec sum = broadcast(narrow_.start());
      for (i64 d = 0; d < step.domain; d += kTurn) turn(step, tables, windows, d, std::min(kTurn, step.domain - d), sum);
      const auto& to = this->blocks_[step.first_block + block];
      const Vec value = ring_.finish(sum);
      store_part(arena_ + to.out, value, int(to.cells));
      if constexpr (R::scaled) see(first_lanes(int(to.cells), value, Vec{}), high, low);
    }
    Peak peak;
    if constexpr (R::scaled) peak.see(highest(high), -highest(-low));
    return peak;
  }

 private:
  void turn(const Step& step, const Table* tables, const Window* windows, i64 d, i64 count, Vec& sum) const {
    Vec values[kTurn];
    if (!step.tables) std::fill(values, values + count, broadcast(narrow_.one()));
    for (i64 t = 0; t < step.tables; ++t) {
      const V* data = arena_ + tables[t].offset + d * tables[t].domain_stride;
      V scale = V(1);
      if constexpr (R::scaled)
        if (tables[t].source >= 0) scale = message_scale<V>(peaks_[2 * tables[t].source]);
      if (t == 0)
        join<true>(windows[t], data, tables[t].domain_stride, count, scale, values);
      else
        join<false>(windows[t], data, tables[t].domain_stride, count, scale, values);
    }
    for (i64 i = 0; i < count; ++i) ring_.add(sum, values[i]);
  }

  template <bool first>
  void join(const Window& window, const V* from, i64 stride, i64 count, V scale, Vec* values) const {
    const auto each = [&](auto fetch) __attribute__((always_inline)) {
      for (i64 i = 0; i < count; ++i, from += stride) {
        Vec value = fetch();
        if constexpr (R::scaled) value = value * scale;
        values[i] = first ? value : ring_.combine(values[i], value);
      }
    };
    if (!kPermutes || !window.span) {
      const i32* places = this->scattered_.data() + window.first;
      return each([&] {
        V scattered[lanes];
        for (int j = 0; j < lanes; ++j) scattered[j] = from[places[j]];
        return load(scattered);
      });
    }
    from += window.first;
    if constexpr (kPermutes) {
      const int span = window.span;
      const Vector<Index> places = indices(window);
      const auto part = [&](int number) { return load_part(from + number * lanes, std::clamp(span - number * lanes, 0, lanes)); };
      if (span <= 2 * lanes) return each([&] { return __builtin_shuffle(part(0), part(1), places); });
      const Vector<Index> upper = places & Index(2 * lanes);
      each([&] {
        const Vec near = __builtin_shuffle(part(0), part(1), places), far = __builtin_shuffle(part(2), part(3), places);
        return upper ? far : near;
      });
    }
  }

  static Vector<Index> indices(const Window& window) {
    Index places[lanes];
    for (int j = 0; j < lanes; ++j) places[j] = Index(window.places[j]);
    return load(places);
  }

  static void see(Vec value, Vec& high, Vec& low) {
    high = value > high ? value : high;
    const Vec positive = value > Vec{} ? value : broadcast(std::numeric_limits<V>::infinity());
    low = positive < low ? positive : low;
  }

  static double highest(const Vec& values) {
    V parts[lanes];
    store(parts, values);
    for (int half = lanes / 2; half > 0; half /= 2)
      for (int j = 0; j < half; ++j) parts[j] = std::max(parts[j], parts[j + half]);
    return double(parts[0]);
  }

  R narrow_;
  decltype(Wide<R>::ring(R{})) ring_;
  V* arena_;
  const double* peaks_;
};

}  // namespace elimina::ELIMINA_ISA
