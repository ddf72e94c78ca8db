#include "approx/scoped_tables.hpp"

#include <algorithm>
#include <type_traits>

namespace elimina::approx {

std::int64_t cells_of(std::span<const std::int32_t> scope, std::span<const std::int64_t> sizes) {
  constexpr std::int64_t most = std::int64_t{1} << 62;
  std::int64_t cells = 1;
  for (const std::int32_t v : scope)
    if (__builtin_mul_overflow(cells, sizes[v], &cells) || cells > most) return most;
  return cells;
}

Runs runs_of(std::span<const std::int32_t> whole, std::span<const std::int32_t> part,
             std::span<const std::int64_t> sizes) {
  Runs runs;
  std::vector<std::int64_t> strides(whole.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t i = part.size(); i-- > 0;) {
    strides[std::find(whole.begin(), whole.end(), part[i]) - whole.begin()] = stride;
    stride *= sizes[part[i]];
  }
  for (std::size_t axis = 0; axis < whole.size(); ++axis) {
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
  if (runs.sizes.empty()) runs = {{1}, {0}};
  if (runs.strides.back() > 1) {  // a fast run of one cell
    runs.sizes.push_back(1);
    runs.strides.push_back(0);
  }
  return runs;
}

namespace {

// Calls work with the length of fast runs, as a constant where it is small.
template <class Work>
void with_length(std::int64_t length, Work work) {
  switch (length) {
    case 1: return work(std::integral_constant<std::int64_t, 1>{});
    case 2: return work(std::integral_constant<std::int64_t, 2>{});
    case 4: return work(std::integral_constant<std::int64_t, 4>{});
    default: return work(length);
  }
}

template <class Combine>
void combine_with(double* table, const Runs& runs, const double* part, Combine combine) {
  with_length(runs.sizes.back(), [&](auto fast) {
    if (runs.strides.back() == 0) {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
        const double value = part[other];
        for (std::int64_t i = 0; i < fast; ++i) combine(table[cell + i], value);
      });
    } else {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
        for (std::int64_t i = 0; i < fast; ++i) combine(table[cell + i], part[other + i]);
      });
    }
  });
}

}  // namespace

void multiply_by(double* table, const Runs& runs, const double* factor) {
  combine_with(table, runs, factor, [](double& cell, double value) { cell *= value; });
}

void add_to(double* table, const Runs& runs, const double* term) {
  combine_with(table, runs, term, [](double& cell, double value) { cell += value; });
}

void add_up(const double* table, const Runs& runs, double* sums) {
  with_length(runs.sizes.back(), [&](auto fast) {
    if (runs.strides.back() == 0) {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
        double sum = 0;
        for (std::int64_t i = 0; i < fast; ++i) sum += table[cell + i];
        sums[other] += sum;
      });
    } else {
      for_rows(runs, [&](std::int64_t cell, std::int64_t other) {
        for (std::int64_t i = 0; i < fast; ++i) sums[other + i] += table[cell + i];
      });
    }
  });
}

}  // namespace elimina::approx
