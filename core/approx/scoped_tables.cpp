#include "approx/scoped_tables.hpp"

#include <algorithm>
#include <type_traits>

#include "versions.hpp"

namespace elimina::approx {

std::int64_t cells_of(std::span<const std::int32_t> scope, std::span<const std::int64_t> sizes) {
  constexpr std::int64_t kMaxCells = std::int64_t{1} << 62;
  std::int64_t cells = 1;
  for (const std::int32_t v : scope)
    if (__builtin_mul_overflow(cells, sizes[v], &cells) || cells > kMaxCells) return kMaxCells;
  return cells;
}

void set_runs(Runs& runs, std::span<const std::int32_t> whole, std::span<const std::int32_t> subscope,
              std::span<const std::int64_t> sizes) {
  std::array<std::int64_t, 64> strides;
  std::fill_n(strides.begin(), whole.size(), 0);
  std::int64_t stride = 1;
  std::size_t axis = whole.size();
  for (std::size_t i = subscope.size(); i-- > 0;) {
    // In most calls, both scopes have the same order, so the search for an axis begins where the last one ended.
    do axis = (axis == 0 ? whole.size() : axis) - 1;
    while (whole[axis] != subscope[i]);
    strides[axis] = stride;
    stride *= sizes[subscope[i]];
  }
  runs.sizes.clear();
  runs.strides.clear();
  for (axis = 0; axis < whole.size(); ++axis) {
    const std::int64_t size = sizes[whole[axis]];
    const bool is_merged = !runs.sizes.empty() && runs.strides.back() == strides[axis] * size;
    if (is_merged) {
      runs.sizes.back() *= size;
      runs.strides.back() = strides[axis];
    } else {
      runs.sizes.push_back(size);
      runs.strides.push_back(strides[axis]);
    }
  }
  if (runs.sizes.empty() || runs.strides.back() > 1) {  // adds a fast run of one cell
    runs.sizes.push_back(1);
    runs.strides.push_back(0);
  }
}

Runs runs_of(std::span<const std::int32_t> whole, std::span<const std::int32_t> subscope,
             std::span<const std::int64_t> sizes) {
  Runs runs;
  set_runs(runs, whole, subscope, sizes);
  return runs;
}

namespace {

// Calls work(fast) with the length of the fast runs. The shortest lengths are compile-time constants.
template <class Work>
[[gnu::always_inline]] inline void with_length(const Runs& runs, Work work) {
  switch (const std::int64_t fast = runs.sizes.back()) {
    case 1: return work(std::integral_constant<std::int64_t, 1>());
    case 2: return work(std::integral_constant<std::int64_t, 2>());
    case 3: return work(std::integral_constant<std::int64_t, 3>());
    case 4: return work(std::integral_constant<std::int64_t, 4>());
    case 5: return work(std::integral_constant<std::int64_t, 5>());
    case 6: return work(std::integral_constant<std::int64_t, 6>());
    case 8: return work(std::integral_constant<std::int64_t, 8>());
    default: return work(fast);
  }
}

template <class Combine>
[[gnu::always_inline]] inline void combine_with(double* table, const Runs& runs, const double* factor,
                                                Combine combine) {
  with_length(runs, [&](const auto fast) __attribute__((always_inline)) {
    if (runs.strides.back() == 0) {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) __attribute__((always_inline)) {
        const double value = factor[other];
        for (std::int64_t i = 0; i < fast; ++i) combine(table[cell + i], value);
      });
    } else {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < fast; ++i) combine(table[cell + i], factor[other + i]);
      });
    }
  });
}

[[gnu::always_inline]] inline double total(const double* cells, std::int64_t count) {
  // Four independent sums at a time hide the latency of additions.
  std::array<double, 4> sums{};
  std::int64_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (int lane = 0; lane < 4; ++lane) sums[lane] += cells[i + lane];
  for (; i < count; ++i) sums[0] += cells[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// Runs of the functions below that take scopes instead of runs; each call overwrites them.
thread_local Runs runs_of_meeting;

}  // namespace

ELIMINA_VERSIONS void set_to(double* table, const Runs& runs, const double* factor) {
  combine_with(table, runs, factor, [](double& cell, double value) __attribute__((always_inline)) { cell = value; });
}

ELIMINA_VERSIONS void multiply_by(double* table, const Runs& runs, const double* factor) {
  combine_with(table, runs, factor, [](double& cell, double value) __attribute__((always_inline)) { cell *= value; });
}

ELIMINA_VERSIONS void add_to(double* table, const Runs& runs, const double* term) {
  combine_with(table, runs, term, [](double& cell, double value) __attribute__((always_inline)) { cell += value; });
}

ELIMINA_VERSIONS void add_up(const double* table, const Runs& runs, double* sums) {
  with_length(runs, [&](const auto fast) __attribute__((always_inline)) {
    if (runs.strides.back() == 0) {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other)
                         __attribute__((always_inline)) { sums[other] += total(table + cell, fast); });
    } else {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) __attribute__((always_inline)) {
        for (std::int64_t i = 0; i < fast; ++i) sums[other + i] += table[cell + i];
      });
    }
  });
}

void multiply_by(double* table, std::span<const std::int32_t> whole, const double* factor,
                 std::span<const std::int32_t> subscope, std::span<const std::int64_t> sizes) {
  set_runs(runs_of_meeting, whole, subscope, sizes);
  multiply_by(table, runs_of_meeting, factor);
}

void spread(double* table, std::span<const std::int32_t> whole, const double* factor,
            std::span<const std::int32_t> axes, std::span<const std::int64_t> sizes) {
  set_runs(runs_of_meeting, whole, axes, sizes);
  set_to(table, runs_of_meeting, factor);
}

void add_up(const double* table, std::span<const std::int32_t> whole, double* sums,
            std::span<const std::int32_t> subscope, std::span<const std::int64_t> sizes) {
  set_runs(runs_of_meeting, whole, subscope, sizes);
  add_up(table, runs_of_meeting, sums);
}

ELIMINA_VERSIONS double sum_of(std::span<const double> cells) {
  return total(cells.data(), std::int64_t(cells.size()));
}

ELIMINA_VERSIONS double largest_of(std::span<const double> cells) {
  std::array<double, 4> peaks{};
  std::size_t i = 0;
  for (; i + 4 <= cells.size(); i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) peaks[lane] = std::max(peaks[lane], cells[i + lane]);
  for (; i < cells.size(); ++i) peaks[0] = std::max(peaks[0], cells[i]);
  return std::max(std::max(peaks[0], peaks[1]), std::max(peaks[2], peaks[3]));
}

}  // namespace elimina::approx
