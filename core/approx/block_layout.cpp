#include "approx/block_layout.hpp"

#include "approx/powered_sums.hpp"
#include "versions.hpp"

namespace elimina::approx {
namespace {

// Runs of one cell or of following ones, some of whose lengths the compiler unrolls.
template <bool kReplaces, bool kRepeats>
inline void spread_runs(std::span<const int> places, i64 run, const double* __restrict source,
                        double* __restrict block) {
  for (const int place : places) {
    for (i64 i = 0; i < run; ++i) {
      const double value = source[place + (kRepeats ? 0 : i)];
      block[i] = kReplaces ? value : block[i] + value;
    }
    block += run;
  }
}

template <bool kReplaces, bool kRepeats>
inline void spread_by_length(std::span<const int> places, i64 run, const double* source, double* block) {
  switch (run) {
    case 2: return spread_runs<kReplaces, kRepeats>(places, 2, source, block);
    case 4: return spread_runs<kReplaces, kRepeats>(places, 4, source, block);
    case 8: return spread_runs<kReplaces, kRepeats>(places, 8, source, block);
    default: return spread_runs<kReplaces, kRepeats>(places, run, source, block);
  }
}

ELIMINA_VERSIONS void replace_by_rows(std::span<const int> places, i64 run, const double* source, double* block) {
  spread_by_length<true, false>(places, run, source, block);
}

ELIMINA_VERSIONS void replace_by_cells(std::span<const int> places, i64 run, const double* source, double* block) {
  spread_by_length<true, true>(places, run, source, block);
}

ELIMINA_VERSIONS void add_rows(std::span<const int> places, i64 run, const double* source, double* block) {
  spread_by_length<false, false>(places, run, source, block);
}

ELIMINA_VERSIONS void add_cells(std::span<const int> places, i64 run, const double* source, double* block) {
  spread_by_length<false, true>(places, run, source, block);
}

inline void gather_rows_of(std::span<const int> places, i64 run, const double* __restrict block,
                           double* __restrict target) {
  for (const int place : places) {
    for (i64 i = 0; i < run; ++i) target[place + i] += block[i];
    block += run;
  }
}

ELIMINA_VERSIONS void gather_rows(std::span<const int> places, i64 run, const double* block, double* target) {
  switch (run) {
    case 2: return gather_rows_of(places, 2, block, target);
    case 4: return gather_rows_of(places, 4, block, target);
    case 8: return gather_rows_of(places, 8, block, target);
    default: return gather_rows_of(places, run, block, target);
  }
}

inline void gather_sums_of(std::span<const int> places, i64 run, const double* __restrict block,
                           double* __restrict target) {
  for (const int place : places) {
    double sum = 0;
    for (i64 i = 0; i < run; ++i) sum += block[i];
    target[place] += sum;
    block += run;
  }
}

ELIMINA_VERSIONS void gather_sums(std::span<const int> places, i64 run, const double* block, double* target) {
  switch (run) {
    case 2: return gather_sums_of(places, 2, block, target);
    case 4: return gather_sums_of(places, 4, block, target);
    default:
      for (const int place : places) {
        target[place] += sum_of(block, run);
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
  places_.assign(1, 0);
  // The slowest axis first: each faster one repeats every place.
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::size_t count = places_.size();
    const i64 size = sizes[axis];
    places_.resize(count * size);
    for (std::size_t i = count; i-- > 0;)
      for (i64 x = size; x-- > 0;) places_[i * size + x] = places_[i] + int(x * strides[axis]);
  }
}

void BlockLayout::spread(const double* source, double* block, bool replaces) const {
  const auto add =
      replaces ? (is_repeated_ ? replace_by_cells : replace_by_rows) : (is_repeated_ ? add_cells : add_rows);
  add(places_, run_, source, block);
}

void BlockLayout::gather(const double* block, double* target) const {
  (is_repeated_ ? gather_sums : gather_rows)(places_, run_, block, target);
}

}  // namespace elimina::approx
