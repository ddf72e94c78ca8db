#include "approx/powered_sums.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "approx/transcendental.hpp"
#include "versions.hpp"

namespace elimina::approx {
namespace {

constexpr double kUnit = 1.0 / kWhole, kLogOfWhole = 21.487562596892644;

// Number of sums that are computed at the same time.
constexpr i64 kLanes = 8;

// Largest number of columns whose maxima and totals are on the stack.
constexpr i64 kChunkColumns = 128;

inline double finite_magnitude(double x) {
  const double magnitude = std::abs(x);
  return magnitude < -kLogOfZero ? magnitude : 0;
}

inline Share share_of(double fraction) { return Share(fraction * kWhole + 0.5); }

ELIMINA_FUSED_VERSIONS void largest_terms(const double* terms, i64 rows, i64 columns, double* __restrict sums,
                                          Share* __restrict shares, i64 share_stride) {
  std::copy_n(terms, columns, sums);
  for (i64 row = 1; row < rows; ++row)
    for (i64 s = 0; s < columns; ++s) sums[s] = std::max(sums[s], terms[row * columns + s]);
  if (!shares) return;
  for (i64 s = 0; s < columns; ++s) {
    bool is_taken = terms[s] == sums[s];  // of equal terms, the first is taken
    for (i64 row = 1; row < rows; ++row) {
      const bool is_largest = !is_taken && terms[row * columns + s] == sums[s];
      shares[(row - 1) * share_stride + s] = is_largest ? kWhole : 0;
      is_taken |= is_largest;
    }
  }
}

// Sums two rows; for weight 1, log(exp a + exp b) = max(a, b) + log(1 + exp(-|a - b|)). If both are minus infinity, a -
// b is NaN and counts as a large difference.
template <bool kShares>
inline void sum_pairs(const double* __restrict first, const double* __restrict second, i64 columns, double weight,
                      double* __restrict sums, Share* __restrict shares) {
  const double sign = weight < 0 ? -1 : 1, scale = std::abs(1 / weight);
  for (i64 s = 0; s < columns; ++s) {
    const double a = sign * first[s], b = sign * second[s];
    const double excess = b - a;
    const double term = exponential(-std::abs(excess) * scale);
    const double peak = sign * (a > b ? a : b);
    sums[s] = peak + weight * logarithm_of_successor(term);
    if constexpr (kShares) {
      const double larger = 1 / (1 + term);
      shares[s] = share_of(excess > 0 ? larger : term * larger);
    }
  }
}

ELIMINA_FUSED_VERSIONS void sum_pairs_only(const double* first, const double* second, i64 columns, double weight,
                                           double* sums) {
  sum_pairs<false>(first, second, columns, weight, sums, nullptr);
}

ELIMINA_FUSED_VERSIONS void sum_pairs_with_shares(const double* first, const double* second, i64 columns, double weight,
                                                  double* sums, Share* shares) {
  sum_pairs<true>(first, second, columns, weight, sums, shares);
}

// Sums any number of rows. The largest term of a column (`peaks`; the smallest one for a negative weight) is subtracted
// from all terms before exponentials are taken. If it is minus infinity, 0 is subtracted instead.
ELIMINA_FUSED_VERSIONS void sum_rows(double* __restrict terms, i64 rows, i64 columns, double weight,
                                     double* __restrict sums, Share* __restrict shares, i64 share_stride) {
  const double sign = weight < 0 ? -1 : 1, scale = 1 / weight;
  double peaks[kChunkColumns], totals[kChunkColumns];
  for (i64 begin = 0; begin < columns; begin += kChunkColumns) {
    const i64 width = std::min(kChunkColumns, columns - begin);
    std::copy_n(terms + begin, width, peaks);
    for (i64 row = 1; row < rows; ++row)
      for (i64 s = 0; s < width; ++s) {
        const double peak = sign * peaks[s], term = sign * terms[row * columns + begin + s];
        peaks[s] = sign * (peak > term ? peak : term);
      }
    std::fill_n(totals, width, 0.0);
    for (i64 row = 0; row < rows; ++row)
      for (i64 s = 0; s < width; ++s) {
        double& term = terms[row * columns + begin + s];
        const double exponent = (term - (peaks[s] == kLogOfZero ? 0 : peaks[s])) * scale;
        const double power = exponential(exponent < 0 ? exponent : 0);
        term = power;
        totals[s] += power;
      }
    for (i64 s = 0; s < width; ++s) {
      totals[s] = totals[s] > 1 ? totals[s] : 1;
      const double sum = peaks[s] + weight * logarithm(totals[s]);
      sums[begin + s] = peaks[s] == kLogOfZero ? kLogOfZero : sum;
    }
    if (!shares) continue;
    for (i64 row = 1; row < rows; ++row)
      for (i64 s = 0; s < width; ++s)
        shares[(row - 1) * share_stride + begin + s] = share_of(terms[row * columns + begin + s] / totals[s]);
  }
}

ELIMINA_FUSED_VERSIONS void raise_to_magnitudes(const double* terms, i64 rows, i64 columns,
                                                double* __restrict magnitudes) {
  for (i64 row = 0; row < rows; ++row)
    for (i64 s = 0; s < columns; ++s) {
      const double magnitude = finite_magnitude(terms[row * columns + s]);
      magnitudes[s] = magnitudes[s] > magnitude ? magnitudes[s] : magnitude;
    }
}

}  // namespace

void sum_powers(double* terms, i64 rows, i64 columns, double weight, double* sums, Share* shares, i64 share_stride,
                double* magnitudes) {
  raise_to_magnitudes(terms, rows, columns, magnitudes);
  if (weight == 0) largest_terms(terms, rows, columns, sums, shares, share_stride);
  else if (rows != 2) sum_rows(terms, rows, columns, weight, sums, shares, share_stride);
  else if (shares) sum_pairs_with_shares(terms, terms + columns, columns, weight, sums, shares);
  else sum_pairs_only(terms, terms + columns, columns, weight, sums);
}

ELIMINA_FUSED_VERSIONS void split_by_shares(const double* above, const Share* shares, i64 share_stride, i64 rows,
                                            i64 columns, double* __restrict beliefs) {
  std::copy_n(above, columns, beliefs);
  for (i64 row = 1; row < rows; ++row)
    for (i64 s = 0; s < columns; ++s) {
      const double belief = above[s] * (shares[(row - 1) * share_stride + s] * kUnit);
      beliefs[row * columns + s] = belief;
      const double rest = beliefs[s] - belief;
      beliefs[s] = rest > 0 ? rest : 0;  // rounded shares may add up to more than the whole
    }
}

ELIMINA_FUSED_VERSIONS double conditional_entropy(const double* above, const double* beliefs, const Share* shares,
                                                  i64 share_stride, i64 rows, i64 columns) {
  double lanes[kLanes] = {};
  const auto add = [&](i64 begin, i64 width) __attribute__((always_inline)) {
    Share rest[kLanes];
    std::fill_n(rest, kLanes, kWhole);
    const auto subtract_logarithms = [&](const double* belief, const Share* share) __attribute__((always_inline)) {
      for (i64 lane = 0; lane < width; ++lane)
        lanes[lane] -= belief[lane] * logarithm(share[lane] > 1 ? share[lane] : 1);
    };
    for (i64 row = 1; row < rows; ++row) {
      const Share* const share = shares + (row - 1) * share_stride + begin;
      for (i64 lane = 0; lane < width; ++lane) rest[lane] = rest[lane] > share[lane] ? rest[lane] - share[lane] : 0;
      subtract_logarithms(beliefs + row * columns + begin, share);
    }
    subtract_logarithms(beliefs + begin, rest);
    for (i64 lane = 0; lane < width; ++lane) lanes[lane] += above[begin + lane] * kLogOfWhole;
  };
  i64 s = 0;
  for (; s + kLanes <= columns; s += kLanes) add(s, kLanes);
  if (s < columns) add(s, columns - s);
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

ELIMINA_FUSED_VERSIONS double sum_of(const double* values, i64 count) {
  double lanes[kLanes] = {};
  i64 i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (i64 lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  for (; i < count; ++i) lanes[i % kLanes] += values[i];
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

}  // namespace elimina::approx
