// Semirings as element operations (on scalars, or on the vector types of a compiler), and the list of them. A `Sum` is the running marginal of one output cell: start(), add()
// for each value of the eliminated variable, finish(). combine() joins the values of two tables. ones(n) is the marginal of n values one(). better() compares two values for
// decoding.
//
// `scaled`: the largest value of each message is recorded, and its readers divide it by 2^scale_exponent. `is_arithmetic`: the operations are plain arithmetic, which vector types
// have. `is_empty_zero`: a marginal is the semiring's zero only if nothing but zeros was added to it.
#pragma once
#include "config.hpp"

namespace elimina {

template <class T>
inline constexpr bool is_integer = T(1) / 2 == 0;

// Integers never overflow: the planner picks a dtype that holds (tables in a step) x infinity, and a marginal starts at `infinity`,
// which it never exceeds.
template <class T>
struct MinSum {
  using Value = T;
  using Sum = T;
  static constexpr bool scaled = false, is_arithmetic = true, is_empty_zero = true;
  T infinity;  // the smallest forbidden value
  ELIMINA_HD T one() const { return T(0); }
  ELIMINA_HD T ones(i64) const { return one(); }
  ELIMINA_HD T combine(T a, T b) const { return T(a + b); }
  ELIMINA_HD Sum start() const { return infinity; }
  ELIMINA_HD void add(Sum& sum, T value) const { sum = value < sum ? value : sum; }
  ELIMINA_HD T finish(Sum sum) const { return sum; }
  ELIMINA_HD bool better(T a, T b) const { return a < b; }
};

// Minimum, over assignments, of the worst cost that a table gives the assignment. one() of integers is a constant, not
// -infinity: CUDA 13.0's compiler drops the sign of -infinity in a maximum of three (compute capability 9.0).
template <class T>
struct MinMax {
  using Value = T;
  using Sum = T;
  static constexpr bool scaled = false, is_arithmetic = true, is_empty_zero = true;
  T infinity;  // the smallest forbidden value
  ELIMINA_HD T one() const {
    if constexpr (is_integer<T>) return T(i64(-1) << (8 * sizeof(T) - 1));
    else return -std::numeric_limits<T>::infinity();
  }
  ELIMINA_HD T ones(i64) const { return one(); }
  ELIMINA_HD T combine(T a, T b) const { return a > b ? a : b; }
  ELIMINA_HD Sum start() const { return infinity; }
  ELIMINA_HD void add(Sum& sum, T value) const { sum = value < sum ? value : sum; }
  ELIMINA_HD T finish(Sum sum) const { return sum; }
  ELIMINA_HD bool better(T a, T b) const { return a < b; }
};

// Powers of two up to this one are normal numbers, and so are their reciprocals.
template <class T>
inline constexpr int kMostExponent = sizeof(T) == 4 ? 126 : 1022;

// Exponent of the power of two that readers divide a table by, from the table's largest value; 0 if that is not positive.
// The clamp keeps the reciprocal of the power a normal number.
template <class T>
ELIMINA_HD int scale_exponent(double peak) {
  if (!(peak > 0)) return 0;
  // The exponent bits of subnormal and infinite numbers lie beyond the limit, too.
  const int limit = kMostExponent<T>, exponent = int(__builtin_bit_cast(unsigned long long, peak) >> 52) - 1023;
  return exponent < -limit ? -limit : exponent > limit ? limit : exponent;
}

template <class T>
struct SumProduct {
  using Value = T;
  using Sum = T;
  static constexpr bool scaled = true, is_arithmetic = true, is_empty_zero = true;
  ELIMINA_HD T one() const { return T(1); }
  ELIMINA_HD T ones(i64 count) const { return T(count); }
  ELIMINA_HD T combine(T a, T b) const { return a * b; }
  ELIMINA_HD Sum start() const { return T{}; }
  ELIMINA_HD void add(Sum& sum, T value) const { sum = sum + value; }
  ELIMINA_HD T finish(Sum sum) const { return sum; }
  ELIMINA_HD bool better(T a, T b) const { return a > b; }
};

// weight x log of the sum of exp(value / weight). Weight 1: logarithms of sums; 0: of maxima; other weights are those of
// Hoelder's inequality: if a sum of products is replaced by one weighted sum for each factor, and the weights add up to 1, the
// results add up to a bound on the logarithm of the sum: from above if all weights are positive, from below if only one is
// (Liu and Ihler 2011, "Bounding the partition function using Hoelder's inequality").
template <class T>
struct LogSumExp {
  using Value = T;
  struct Sum {
    T peak;   // the value with the largest exp(value / weight) so far
    T total;  // of exp((value - peak) / weight)
  };
  T weight = T(1), inverse = T(1);
  static constexpr bool scaled = false, is_arithmetic = false, is_empty_zero = true;
  ELIMINA_HD T one() const { return T(0); }
  ELIMINA_HD T ones(i64 count) const { return finish({one(), T(count)}); }
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

// True if steps that multiply two tables are matrix products.
template <class R>
inline constexpr bool multiplies = false;
template <class T>
inline constexpr bool multiplies<SumProduct<T>> = true;

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

// Counting modulo 2^64 (modulus 0: unsigned words wrap around) or modulo a prime below 2^31. The planner bounds the count and
// combines enough moduli (Chinese remainders) for an exact answer.
template <class T>
struct Count {
  using Value = T;
  using Sum = T;
  // A count of 0 modulo a prime does not prove that the count is 0.
  static constexpr bool scaled = false, is_arithmetic = false, is_empty_zero = false;
  T modulus;
  ELIMINA_HD T one() const { return 1; }
  ELIMINA_HD T ones(i64 count) const { return finish(T(count)); }
  ELIMINA_HD T combine(T a, T b) const { return modulus ? a * b % modulus : a * b; }
  ELIMINA_HD Sum start() const { return 0; }
  ELIMINA_HD void add(Sum& sum, T value) const { sum += value; }
  ELIMINA_HD T finish(Sum sum) const { return modulus ? sum % modulus : sum; }
  ELIMINA_HD bool better(T a, T b) const { return a > b; }
};

// The semiring with a program's parameter, of weight 1.
template <class R>
ELIMINA_HD R semiring_of(typename R::Value parameter) {
  if constexpr (!weighted<R> && requires { R{parameter}; }) return R{parameter};
  else return R{};
}

// The list of semirings: kind, name, class, and group of number types. `elimina/problem/semirings.py` has a record of the same name for each. `use` gets the further arguments, too.
// clang-format off
#define ELIMINA_SEMIRINGS(use, ...)                                    \
  use(min_sum, "min-sum", MinSum, COSTS, __VA_ARGS__)                  \
  use(min_max, "min-max", MinMax, COSTS, __VA_ARGS__)                  \
  use(sum_product, "sum-product", SumProduct, FLOATS, __VA_ARGS__)     \
  use(log_sum_exp, "log-sum-exp", LogSumExp, FLOATS, __VA_ARGS__)      \
  use(count, "count", Count, WORDS, __VA_ARGS__)
// clang-format on

// Encodings of a model's values, as `Rule` of core/tables/encode.hpp:
// support: 1 where the tables allow the assignment, else 0.
// distances: costs or negated logarithms of probabilities, minus the best one of each table. Integers: a forbidden value, or one from a limit on, becomes the limit.
// costs: costs unchanged, utilities and probabilities negated; a join takes the worst one. Integers: a forbidden value becomes the limit.
// logs: logarithms, minus the logarithm of the largest value of each table.
// products: the product times a power of two, so that its largest value is in [1, 2).
#define ELIMINA_ENCODINGS(use) use(support) use(distances) use(costs) use(logs) use(products)

#define ELIMINA_OF_FLOATS(use, kind, R) use(kind, R<float>) use(kind, R<double>)
#define ELIMINA_OF_COSTS(use, kind, R) \
  use(kind, R<i16>) use(kind, R<i32>) use(kind, R<i64>) ELIMINA_OF_FLOATS(use, kind, R)
#define ELIMINA_OF_WORDS(use, kind, R) use(kind, R<u64>)

// Each class with each of its number types: use(kind, class).
#define ELIMINA_OF(kind, name, R, numbers, use) ELIMINA_OF_##numbers(use, kind, R)
#define ELIMINA_TYPED_SEMIRINGS(use) ELIMINA_SEMIRINGS(ELIMINA_OF, use)

}  // namespace elimina
