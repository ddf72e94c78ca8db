// Powered sums of logarithms, down each column of a block of a table: weight * log(sum exp(term / weight)).
#pragma once
#include <cstdint>
#include <limits>

#include "elimina/config.hpp"

namespace elimina::approx {

// A share of a sum in fixed point: multiples of 1 / kWhole.
using Share = std::int32_t;
constexpr Share kWhole = 2147483647;

constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

// Writes the powered sum of each column of a block with `rows` rows to `sums`, and may overwrite the terms. For weight
// 0, the sum is the largest term. `shares`: gets the share of each term in its column's sum, for rows 1 and later,
// `share_stride` apart; nullptr if not wanted. `magnitudes`: raised to the largest finite absolute value of each
// column's terms.
void sum_powers(double* terms, i64 rows, i64 columns, double weight, double* sums, Share* shares, i64 share_stride,
                double* magnitudes);

// Splits each column's belief, in `above`, among the rows by the shares of rows 1 and later; row 0 gets the rest.
void split_by_shares(const double* above, const Share* shares, i64 share_stride, i64 rows, i64 columns,
                     double* beliefs);

// Returns the entropy of the rows given the columns: minus the sum of belief x log(share).
double conditional_entropy(const double* above, const double* beliefs, const Share* shares, i64 share_stride, i64 rows,
                           i64 columns);

double sum_of(const double* values, i64 count);

}  // namespace elimina::approx
