// Moment-matching steps (elimina/matching.hpp), row by row: a row spans the trailing axes that are contiguous in all
// tables and in the output.
#pragma once
#include <algorithm>
#include <vector>

#include "elimina/matching.hpp"
#include "elimina/program.hpp"

namespace elimina::ELIMINA_ISA {

template <class R>
class MatchingStep {
  using V = typename R::Value;
  static constexpr i64 kCells = 1024;  // number of cells that are handled at a time

 public:
  MatchingStep(R ring, V* arena) : ring_(ring), arena_(arena) {}

  void begin(StepView step) {
    step_ = step;
    ring_ = weighed(ring_, step.weight());
    row_cells_ = 1;
    for (row_axis_ = step[kAxes]; row_axis_ > 0 && follows(row_axis_ - 1); --row_axis_)
      row_cells_ *= step.size(row_axis_ - 1);
    rows_ = step.cells() / row_cells_;
    rows_together_ = std::max<i64>(1, kCells / row_cells_);
    chunks_ = (row_cells_ + kCells - 1) / kCells;
  }

  i64 items() const { return (rows_ + rows_together_ - 1) / rows_together_ * chunks_; }

  // Items are independent, so threads may share them.
  void run(i64 first, i64 last) const {
    std::vector<i64> digits(row_axis_);
    std::vector<const V*> from(step_[kTables]);
    for (i64 item = first; item < last; ++item) {
      const i64 row = item / chunks_ * rows_together_, cell = item % chunks_ * kCells;
      const i64 cells = std::min(kCells, row_cells_ - cell);
      V* out = start(row, cell, digits, from);
      for (i64 remaining = std::min(rows_together_, rows_ - row); remaining > 0; --remaining) {
        level(from.data(), cells, out);
        out = next_row(digits, from, out);
      }
    }
  }

 private:
  bool follows(i64 axis) const {
    if (step_.size(axis) == 1) return true;
    bool is_contiguous = step_.out_stride(axis) == row_cells_;
    for (i64 t = 0; t < step_[kTables]; ++t) is_contiguous = is_contiguous && step_.table(t).stride(axis) == row_cells_;
    return is_contiguous;
  }

  V* start(i64 row, i64 cell, std::vector<i64>& digits, std::vector<const V*>& from) const {
    for (i64 t = 0; t < step_[kTables]; ++t)
      from[t] = arena_ + step_.table(t).offset() + step_.table_index(step_.table(t), row, 0, row_axis_) + cell;
    V* out = arena_ + step_[kOut] + step_.out_index(row, 0, row_axis_) + cell;
    for (i64 axis = row_axis_ - 1; axis >= 0; row /= step_.size(axis--)) digits[axis] = row % step_.size(axis);
    return out;
  }

  V* next_row(std::vector<i64>& digits, std::vector<const V*>& from, V* out) const {
    for (i64 axis = row_axis_ - 1; axis >= 0; --axis) {
      const bool wraps = ++digits[axis] == step_.size(axis);
      const i64 moves = wraps ? 1 - step_.size(axis) : 1;
      for (i64 t = 0; t < step_[kTables]; ++t) from[t] += moves * step_.table(t).stride(axis);
      out += moves * step_.out_stride(axis);
      if (!wraps) break;
      digits[axis] = 0;
    }
    return out;
  }

  void level(const V* const* from, i64 cells, V* out) const {
    V sums[kCells], largest[kCells];
    std::copy_n(from[0], cells, sums);
    if constexpr (is_integer<V>) std::copy_n(from[0], cells, largest);
    for (i64 t = 1; t < step_[kTables]; ++t) {
      const V* values = from[t];
      for (i64 i = 0; i < cells; ++i) sums[i] = V(sums[i] + values[i]);
      if constexpr (is_integer<V>)
        for (i64 i = 0; i < cells; ++i) largest[i] = std::max(largest[i], values[i]);
    }
    const V* table = from[step_[kTablesA]];
    if constexpr (is_integer<V>) switch (step_[kTables]) {
        case 2: return finish<2>(sums, largest, table, cells, out);
        case 3: return finish<3>(sums, largest, table, cells, out);
        case 4: return finish<4>(sums, largest, table, cells, out);
        case 5: return finish<5>(sums, largest, table, cells, out);
        case 6: return finish<6>(sums, largest, table, cells, out);
      }
    finish<0>(sums, largest, table, cells, out);
  }

  // Division of integers by a compile-time constant becomes a multiplication.
  template <int fixed_count>
  void finish(const V* __restrict sums, const V* __restrict largest, const V* __restrict table, i64 cells,
              V* __restrict out) const {
    const int number = int(step_[kTablesA]), count = fixed_count ? fixed_count : int(step_[kTables]);
    for (i64 i = 0; i < cells; ++i)
      out[i] = matched_cell(ring_, sums[i], is_integer<V> ? largest[i] : V(), table[i], number, count);
  }

  R ring_;
  V* arena_;
  StepView step_{};
  i64 row_axis_ = 0, row_cells_ = 1, rows_ = 0, rows_together_ = 1, chunks_ = 1;
};

}  // namespace elimina::ELIMINA_ISA
