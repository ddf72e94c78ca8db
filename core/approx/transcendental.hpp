// Exponentials and logarithms that compilers turn into vector code.
#pragma once
#include <bit>
#include <cstdint>

#include "elimina/config.hpp"

namespace elimina::approx {

// Exponentials of values below this count as 0, because they would not change a sum. The product of two exponentials of
// values above it is a normal number.
constexpr double kLeastExponent = -300;

// ln(2) in two parts; the first ends with zero bits, so that its product with an exponent is exact.
constexpr double kLogOfTwo = 6.93147180369123816490e-01, kLogOfTwoRest = 1.90821492927058770002e-10;

// Returns exp(x) for x <= 0 within a few units in the last place; 0 for x <= kLeastExponent.
inline double exponential(double x) {
  constexpr double shift = 6755399441055744.0;                     // 1.5 * 2^52: adding it rounds to an integer
  const double bounded = x > kLeastExponent ? x : kLeastExponent;  // also replaces NaN
  const double rounded = bounded * 1.4426950408889634074 + shift;
  const double power = rounded - shift;
  const double r = (bounded - power * kLogOfTwo) - power * kLogOfTwoRest;
  // Taylor series on |r| <= ln(2) / 2: the next term is below 2^-56.
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 0.5;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  const double scale = std::bit_cast<double>((std::bit_cast<std::uint64_t>(rounded) + 1023) << 52);
  return x <= kLeastExponent ? 0.0 : sum * scale;
}

// Returns log((1 + s) / (1 - s)) = 2 artanh(s) for |s| < 0.172, by its Taylor series.
inline double logarithm_of_ratio(double s) {
  const double z = s * s;
  double sum = 1.0 / 21;
  sum = sum * z + 1.0 / 19;
  sum = sum * z + 1.0 / 17;
  sum = sum * z + 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  return 2 * s + 2 * s * z * sum;
}

// Returns log(x) for normal x >= 1.
inline double logarithm(double x) {
  constexpr std::uint64_t root = 0x3fe6a09e667f3bcd;  // bits of sqrt(1/2): the mantissa is brought to [root, 2 root)
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t above = bits - root;
  const double mantissa = std::bit_cast<double>((above & 0x000fffffffffffff) + root);
  // The exponent is at most 2047: inserted into the mantissa of 2^52, it becomes a double.
  const double power = std::bit_cast<double>((above >> 52) | 0x4330000000000000) - 4503599627370496.0;
  const double s = (mantissa - 1) / (mantissa + 1);
  return power * kLogOfTwo + (logarithm_of_ratio(s) + power * kLogOfTwoRest);
}

// Returns log(1 + x) for 0 <= x <= 1.
inline double logarithm_of_successor(double x) {
  const bool is_large = x > 0.41421356237309505;  // uses log 2 + log((1 + x) / 2)
  const double s = (is_large ? x - 1 : x) / (is_large ? x + 3 : x + 2);
  return (is_large ? kLogOfTwo : 0) + (logarithm_of_ratio(s) + (is_large ? kLogOfTwoRest : 0));
}

// Replace values of at most 0 by their exponentials, and values of at least 1 by their logarithms.
void exponentials(double* values, i64 count);
void logarithms(double* values, i64 count);

}  // namespace elimina::approx
