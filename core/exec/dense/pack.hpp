// Copies a table's cells in the order of the output's rows: [d][cell], contiguous in the cells. `index`: the table's
// offset of each cell. Offsets may repeat (the table lacks an axis) or jump (the eliminated variable is not its slowest
// axis).
#pragma once
#include <algorithm>
#include <utility>

#include "exec/dense/layout.hpp"
#include "exec/dense/vector.hpp"
#include "exec/paths.hpp"

namespace elimina::ELIMINA_ISA {

template <class Vec, int g, std::size_t... lane>
inline void exchange(Vec& a, Vec& b, std::index_sequence<lane...>) {
  constexpr int lanes = sizeof...(lane);
  const Vec low = __builtin_shufflevector(a, b, ((lane & g) ? lanes + lane - g : lane)...);
  b = __builtin_shufflevector(a, b, ((lane & g) ? lanes + lane : lane + g)...);
  a = low;
}

// Transposes a square block by exchanging its sub-blocks of g x g cells, for g = 1, 2, 4 ...
template <class Vec, int lanes, int g = 1>
inline void transpose(Vec* block) {
  if constexpr (g < lanes) {
#pragma GCC unroll 32
    for (int i = 0; i < lanes; ++i)
      if (!(i & g)) exchange<Vec, g>(block[i], block[i + g], std::make_index_sequence<lanes>{});
    transpose<Vec, lanes, 2 * g>(block);
  }
}

template <class V>
class Packer {
  static constexpr int lanes = kLanes<V>;

 public:
  // `pack` copies the cells [lo, lo + cells) of the index to `to`. `lo` is a multiple of kLanes, and `stride` at least
  // `cells` rounded up to whole vectors.
  Packer(const CellIndex& index, i64 lo, i64 cells, i64 domain, i64 domain_stride, V* to, i64 stride)
      : index_(index), offsets_(index.offsets.data() + lo), lo_(lo), cells_(cells), domain_(domain),
        domain_stride_(domain_stride), to_(to), stride_(stride) {}

  void pack(const V* data) const {
    if constexpr (kPermutes)
      if (transposes()) return transpose_cells(data);
    for (i64 i = 0; i < cells_; i += lanes) {
      if constexpr (kPermutes)
        if (permutes(i)) {
          permute_block(data, i);
          continue;
        }
      if (index_.run >= kShortestRun) copy_runs(data, i);
      else gather_block(data, i);
    }
  }

  void count_paths_taken() const {
    if (transposes()) return count_path(Path::pack_transposed);
    for (i64 i = 0; i < cells_; i += lanes)
      count_path(permutes(i)                  ? Path::pack_permuted
                 : index_.run >= kShortestRun ? Path::pack_runs
                                              : Path::pack_gathered);
  }

 private:
  static constexpr i64 kShortestRun = 4;

  bool transposes() const { return kPermutes && domain_stride_ == 1 && domain_ >= lanes / 2; }
  bool permutes(i64 i) const { return kPermutes && index_.window_cells[(lo_ + i) / lanes]; }

  void transpose_cells(const V* data) const {
    for (i64 i = 0; i < cells_; i += lanes) {
      for (i64 d = 0; d < domain_; d += lanes) {
        Vector<V> block[lanes];
        const int rows = int(std::min<i64>(lanes, domain_ - d));
#pragma GCC unroll 32
        for (int j = 0; j < lanes; ++j) {
          const V* from = data + offsets_[std::min(i + j, cells_ - 1)] + d;
          block[j] = rows == lanes ? load(from) : load_part(from, rows);
        }
        transpose<Vector<V>, lanes>(block);
        for (int j = 0; j < rows; ++j) store(to_ + (d + j) * stride_ + i, block[j]);
      }
    }
  }

  void permute_block(const V* data, i64 i) const {
    using Index = typename IndexOf<V>::type;
    const i64 block = (lo_ + i) / lanes;
    const i32 first = index_.window_first[block], count = index_.window_cells[block];
    alignas(kVectorBytes) Index at[lanes];
    for (int j = 0; j < lanes; ++j) at[j] = Index(offsets_[std::min(i + j, cells_ - 1)] - first);
    const Vector<Index> positions = load(at), upper = positions & Index(2 * lanes);
    const V* from = data + first;
    for (i64 d = 0; d < domain_; ++d, from += domain_stride_) {
      Vector<V> value = __builtin_shuffle(window(from, count, 0), window(from, count, 1), positions);
      if (count > 2 * lanes) {
        const Vector<V> second = __builtin_shuffle(window(from, count, 2), window(from, count, 3), positions);
        value = upper ? second : value;
      }
      store(to_ + d * stride_ + i, value);
    }
  }

  Vector<V> window(const V* from, i32 count, int number) const {
    const int remaining = count - number * lanes;
    return remaining >= lanes ? load(from + number * lanes)
           : remaining > 0    ? load_part(from + number * lanes, remaining)
                              : Vector<V>{};
  }

  void copy_runs(const V* data, i64 i) const {
    const i64 end = std::min(cells_, i + lanes);
    for (i64 length; i < end; i += length) {
      length = std::min(index_.run - (lo_ + i) % index_.run, end - i);
      const V* from = data + offsets_[i];
      for (i64 d = 0; d < domain_; ++d, from += domain_stride_)
        store_part(to_ + d * stride_ + i, load_part(from, int(length)), int(length));
    }
  }

  void gather_block(const V* data, i64 i) const {
    const i64 end = std::min(cells_, i + lanes);
    for (i64 d = 0; d < domain_; ++d, data += domain_stride_)
      for (i64 j = i; j < end; ++j) to_[d * stride_ + j] = data[offsets_[j]];
  }

  const CellIndex& index_;
  const i32* offsets_;
  i64 lo_, cells_, domain_, domain_stride_;
  V* to_;
  i64 stride_;
};

}  // namespace elimina::ELIMINA_ISA
