// Decimal numbers of FlatZinc as integers over powers of ten.
#pragma once
#include <array>
#include <bit>
#include <cmath>

#include "document.hpp"

namespace elimina::cp::flatzinc {

constexpr int kMostDecimals = 15;
// Limits of the integers that represent a number, a float on the grid, and a sum. They keep the products and sums of
// the solver from overflowing.
constexpr double kGreatestNumber = 0x1p50, kGreatestGrid = 0x1p42, kGreatestSum = 0x1p57;
// A number that is not a short decimal, such as 1/3, gets a numerator of at least this size, and so ten digits; fewer
// if it would need more than `kMostDecimals` decimals.
constexpr double kDigits = 1e9;
// Factor by which errors are enlarged, so that their own rounding does not make them too small.
constexpr double kOutward = 1 + 1e-9;

inline double power(int exponent) {
  static const auto table = [] {
    std::array<double, 40> result{};
    for (int i = 0; i < 40; ++i) result[static_cast<std::size_t>(i)] = std::pow(10.0, i);
    return result;
  }();
  return exponent < 40 ? table[static_cast<std::size_t>(exponent)] : std::pow(10.0, exponent);
}

inline double real(const Term& t) {
  return t.kind == Kind::real ? std::bit_cast<double>(t.value) : static_cast<double>(t.value);
}

// A decimal number: numerator / 10^decimals, which differs from the original number by at most `error`.
struct Decimal {
  Value numerator = 0;
  int decimals = 0;
  double error = 0;
};

// True if a number is whole up to a rounding error: floats of a file are decimals, and 0.3 may have become
// 0.30000000000000004.
inline bool is_whole(double x) { return std::abs(x - std::round(x)) <= 4e-16 * std::abs(x); }

inline Decimal decimal_of(double x) {
  for (int d = 0; d <= kMostDecimals; ++d) {
    const double scaled = x * power(d);
    if (std::abs(scaled) > kGreatestNumber) break;
    if (is_whole(scaled) && (d == 0 || std::abs(scaled) < kDigits * 1000))
      return {static_cast<Value>(std::round(scaled)), d, 0};
  }
  int d = 0;
  while (d < kMostDecimals && std::abs(x) * power(d) < kDigits) ++d;
  const auto numerator = static_cast<Value>(std::round(x * power(d)));
  return {numerator, d, kOutward * std::abs(x - static_cast<double>(numerator) / power(d))};
}

// Adds two decimals. For 0.58 - 0.55 it returns 0.03, although the floating-point difference contains the rounding
// errors of the larger numbers.
inline double sum_of_decimals(double a, double b) {
  const double sum = a + b, error = 4e-16 * (std::abs(a) + std::abs(b));
  for (int d = 0; d <= kMostDecimals; ++d) {
    const double rounded = std::round(sum * power(d)) / power(d);
    if (std::abs(sum - rounded) <= error) return rounded;
  }
  return sum;
}

}  // namespace elimina::cp::flatzinc
