// Semirings as element operations (on scalars, or on the vector types of a compiler). A `Sum` is the running marginal of one output cell: start(), add() for each value of the
// eliminated variable, finish(). combine() joins the values of two tables.
#pragma once
#include "config.hpp"

namespace elimina {

// Integers never wrap: the planner picks a dtype that holds (tables in a step) x infinity, and a marginal starts at infinity,
// so it never exceeds it.
template <class T>
struct MinSum {
  using Value = T;
  using Sum = T;
  static constexpr bool scaled = false;
  T infinity;  // the smallest forbidden value
  ELIMINA_HD T one() const { return T(0); }
  ELIMINA_HD T combine(T a, T b) const { return T(a + b); }
  ELIMINA_HD Sum start() const { return infinity; }
  ELIMINA_HD void add(Sum& sum, T value) const { sum = value < sum ? value : sum; }
  ELIMINA_HD T finish(Sum sum) const { return sum; }
  ELIMINA_HD bool better(T a, T b) const { return a < b; }
};

// Powers of two up to this one are normal numbers, and so are their reciprocals.
template <class T>
inline constexpr int kMostExponent = sizeof(T) == 4 ? 126 : 1022;

// `scaled`: the largest value of each message is recorded, and its readers divide it by 2^scale_exponent. The
// clamp keeps the divisor's reciprocal a normal number.
template <class T>
ELIMINA_HD int scale_exponent(double peak) {
  if (!(peak > 0)) return 0;
  // The exponent's bits of numbers that are not normal are beyond the limit, as these are.
  const int limit = kMostExponent<T>, exponent = int(__builtin_bit_cast(unsigned long long, peak) >> 52) - 1023;
  return exponent < -limit ? -limit : exponent > limit ? limit : exponent;
}

template <class T>
struct SumProduct {
  using Value = T;
  using Sum = T;
  static constexpr bool scaled = true;
  ELIMINA_HD T one() const { return T(1); }
  ELIMINA_HD T combine(T a, T b) const { return a * b; }
  ELIMINA_HD Sum start() const { return T{}; }
  ELIMINA_HD void add(Sum& sum, T value) const { sum = sum + value; }
  ELIMINA_HD T finish(Sum sum) const { return sum; }
  ELIMINA_HD bool better(T a, T b) const { return a > b; }
};

// weight x log of the sum of exp(value / weight). Weight 1: logarithms of sums; 0: of the largest; others are Hoelder's: those of the
// parts of one sum that add up to 1 bound its logarithm, from above if all are positive, from below if a single one is (Liu and Ihler
// 2011, "Bounding the partition function using Hoelder's inequality").
template <class T>
struct LogSumExp {
  using Value = T;
  struct Sum {
    T peak;   // the value with the largest exp(value / weight) so far
    T total;  // of exp((value - peak) / weight)
  };
  T weight = T(1), inverse = T(1);
  static constexpr bool scaled = false;
  ELIMINA_HD T one() const { return T(0); }
  ELIMINA_HD T combine(T a, T b) const { return a + b; }
  ELIMINA_HD Sum start() const {
    const T infinity = std::numeric_limits<T>::infinity();
    return {weight < T(0) ? infinity : -infinity, T(0)};
  }
  ELIMINA_HD void add(Sum& sum, T value) const { add(sum, Sum{value, T(1)}); }
  ELIMINA_HD void add(Sum& sum, Sum other) const {
    if (!(other.total > T(0))) return;
    const T above = (other.peak - sum.peak) * inverse;
    if (above > T(0)) {
      sum.total = sum.total * std::exp(-above) + other.total;
      sum.peak = other.peak;
    } else {
      // The difference is NaN if both are infinite or the weight is 0.
      sum.total = sum.total + (other.peak == sum.peak ? other.total : other.total * std::exp(above));
    }
  }
  ELIMINA_HD T finish(Sum sum) const { return sum.total > T(0) ? sum.peak + weight * std::log(sum.total) : sum.peak; }
  ELIMINA_HD bool better(T a, T b) const { return a > b; }
};

template <class R>
inline constexpr bool weighted = false;
template <class T>
inline constexpr bool weighted<LogSumExp<T>> = true;

// The semiring of a step with this weight.
template <class R>
ELIMINA_HD R weighed(R ring, double weight) {
  if constexpr (weighted<R>) {
    ring.weight = typename R::Value(weight);
    ring.inverse = typename R::Value(1 / weight);
  }
  return ring;
}

// Counting modulo 2^64 (modulus 0: the natural wrap of unsigned words) or modulo a prime below 2^31; the planner bounds the
// count and combines as many moduli as it takes (Chinese remainders), so that the answer is exact.
struct Count {
  using Value = u64;
  using Sum = u64;
  static constexpr bool scaled = false;
  u64 modulus;
  ELIMINA_HD u64 one() const { return 1; }
  ELIMINA_HD u64 combine(u64 a, u64 b) const { return modulus ? a * b % modulus : a * b; }
  ELIMINA_HD Sum start() const { return 0; }
  ELIMINA_HD void add(Sum& sum, u64 value) const { sum += value; }
  ELIMINA_HD u64 finish(Sum sum) const { return modulus ? sum % modulus : sum; }
  ELIMINA_HD bool better(u64 a, u64 b) const { return a > b; }
};

}  // namespace elimina
