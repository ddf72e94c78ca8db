// Tiles of a step of many combinations, and the offsets of its cells: all that does not depend on values.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "elimina/program.hpp"

namespace elimina {

constexpr int kWindows = 4;        // largest number of vectors out of which a block of cells is permuted
constexpr i64 kMostStreamed = 17;  // largest number of tables of a row, its rhs included

// Writes the offset of each combination of values of the axes [first, last) of a step, the last axis fastest.
template <class T, class Stride>
void fill_offsets(T* offsets, StepView step, i64 first, i64 last, Stride stride) {
  i64 cells = 1;
  offsets[0] = 0;
  for (i64 axis = last - 1; axis >= first; --axis) {
    const i64 size = step.size(axis);
    for (i64 digit = 1; digit < size; ++digit) {
      const T shift = T(digit * stride(axis));
      for (i64 i = 0; i < cells; ++i) offsets[digit * cells + i] = offsets[i] + shift;
    }
    cells *= size;
  }
}

// Offsets of a row's cells in a table.
struct CellIndex {
  std::vector<i32> offsets;
  i64 run;  // length of the contiguous runs of cells; each begins at a multiple of the length
  // For each vector-sized block of cells: its lowest offset, and the number of elements from there to its highest
  // offset (0 if they do not fit in `kWindows` vectors).
  std::vector<i32> window_first;
  std::vector<i32> window_cells;

  void fill(StepView step, TableView table);
  void find_runs(StepView step, TableView table, int window_lanes);  // 0 lanes: no windows

 private:
  void find_windows(i64 cells, bool ascending, int lanes);
};

// Memory that steps reuse one after another; its contents are lost when it grows.
class Scratch {
 public:
  ~Scratch();
  void* reserve(i64 bytes) { return bytes <= bytes_ ? data_.get() : grow(bytes); }
  void* data() const { return data_.get(); }

 private:
  void* grow(i64 bytes);

  std::unique_ptr<std::byte[]> data_;
  i64 bytes_ = 0;
};

class TileLayout {
 public:
  i64 items() const { return items_; }

 protected:
  // Properties of the kernels.
  struct Kind {
    i64 value_bytes, sum_bytes;
    int lanes;
    bool vectors, permutes, past_caches;
  };

  explicit TileLayout(Kind kind) : kind_(kind) {}
  ~TileLayout();
  void lay_out(StepView step, i64 wanted_items);

  StepView step_{};
  i64 domain_ = 0, padded_ = 0, tables_ = 0, a_ = 0, b_ = 0, mids_ = 0, packed_ = 0;
  i64 chunk_ = 0, chunk_stride_ = 0, chunks_ = 0, mid_parts_ = 0, mid_part_ = 0, items_ = 0;
  bool past_caches_ = false, dot_ = false;
  std::vector<char> dense_;
  std::vector<CellIndex> lo_;
  std::vector<i64> mid_;

 private:
  i64 whole_vectors(i64 cells) const { return (cells + kind_.lanes - 1) / kind_.lanes * kind_.lanes; }
  i64 chunk_cells() const;
  bool dense_in_lo(i64 t) const;
  void index_lo();
  void index_mid();

  const Kind kind_;
};

}  // namespace elimina
