#include "approx/block_layout.hpp"

#include "approx/powered_sums.hpp"
#include "versions.hpp"

namespace elimina::approx {
namespace {

// Adds a source to the runs of a block, or overwrites the runs (`kReplaces`). The source of each run is a single cell
// (`kRepeats`), or as many consecutive cells as the run has. The compiler unrolls the inner loop if `run` is a small
// constant.
template <bool kReplaces, bool kRepeats>
inline void spread_runs(std::span<const int> offsets, i64 run, const double* __restrict source,
                        double* __restrict block) {
  for (const int offset : offsets) {
    for (i64 i = 0; i < run; ++i) {
      const double value = source[offset + (kRepeats ? 0 : i)];
      block[i] = kReplaces ? value : block[i] + value;
    }
    block += run;
  }
}

template <bool kReplaces, bool kRepeats>
inline void spread_by_length(std::span<const int> offsets, i64 run, const double* source, double* block) {
  switch (run) {
    case 2: return spread_runs<kReplaces, kRepeats>(offsets, 2, source, block);
    case 4: return spread_runs<kReplaces, kRepeats>(offsets, 4, source, block);
    case 8: return spread_runs<kReplaces, kRepeats>(offsets, 8, source, block);
    default: return spread_runs<kReplaces, kRepeats>(offsets, run, source, block);
  }
}

ELIMINA_VERSIONS void replace_by_rows(std::span<const int> offsets, i64 run, const double* source, double* block) {
  spread_by_length<true, false>(offsets, run, source, block);
}

ELIMINA_VERSIONS void replace_by_cells(std::span<const int> offsets, i64 run, const double* source, double* block) {
  spread_by_length<true, true>(offsets, run, source, block);
}

ELIMINA_VERSIONS void add_rows(std::span<const int> offsets, i64 run, const double* source, double* block) {
  spread_by_length<false, false>(offsets, run, source, block);
}

ELIMINA_VERSIONS void add_cells(std::span<const int> offsets, i64 run, const double* source, double* block) {
  spread_by_length<false, true>(offsets, run, source, block);
}

inline void gather_rows_of(std::span<const int> offsets, i64 run, const double* __restrict block,
                           double* __restrict target) {
  for (const int offset : offsets) {
    for (i64 i = 0; i < run; ++i) target[offset + i] += block[i];
    block += run;
  }
}

ELIMINA_VERSIONS void gather_rows(std::span<const int> offsets, i64 run, const double* block, double* target) {
  switch (run) {
    case 2: return gather_rows_of(offsets, 2, block, target);
    case 4: return gather_rows_of(offsets, 4, block, target);
    case 8: return gather_rows_of(offsets, 8, block, target);
    default: return gather_rows_of(offsets, run, block, target);
  }
}

inline void gather_sums_of(std::span<const int> offsets, i64 run, const double* __restrict block,
                           double* __restrict target) {
  for (const int offset : offsets) {
    double sum = 0;
    for (i64 i = 0; i < run; ++i) sum += block[i];
    target[offset] += sum;
    block += run;
  }
}

ELIMINA_VERSIONS void gather_sums(std::span<const int> offsets, i64 run, const double* block, double* target) {
  switch (run) {
    case 2: return gather_sums_of(offsets, 2, block, target);
    case 4: return gather_sums_of(offsets, 4, block, target);
    default:
      for (const int offset : offsets) {
        target[offset] += sum_of(block, run);
        block += run;
      }
  }
}

}  // namespace

void BlockLayout::set(std::span<const i64> sizes, std::span<const i64> strides) {
  std::size_t axes = sizes.size();
  run_ = 1;
  is_repeated_ = axes > 0 && strides.back() == 0;
  while (axes > 0 && strides[axes - 1] == (is_repeated_ ? 0 : run_)) run_ *= sizes[--axes];
  offsets_.assign(1, 0);
  // Visits the axes from slow to fast. Each axis replaces every offset by one offset for each of the axis's values.
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::size_t count = offsets_.size();
    const i64 size = sizes[axis];
    offsets_.resize(count * size);
    for (std::size_t i = count; i-- > 0;)
      for (i64 x = size; x-- > 0;) offsets_[i * size + x] = offsets_[i] + int(x * strides[axis]);
  }
}

void BlockLayout::spread(const double* source, double* block, bool replaces) const {
  const auto add =
      replaces ? (is_repeated_ ? replace_by_cells : replace_by_rows) : (is_repeated_ ? add_cells : add_rows);
  add(offsets_, run_, source, block);
}

void BlockLayout::gather(const double* block, double* target) const {
  (is_repeated_ ? gather_sums : gather_rows)(offsets_, run_, block, target);
}

}  // namespace elimina::approx
