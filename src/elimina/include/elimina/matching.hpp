// Moment matching: cost shifting between the mini-buckets of a bucket (Ihler, Flerova, Dechter and Otten 2012, "Join-graph
// based cost-shifting schemes"). Each mini-bucket has a marginal over the variables that all of them share. Its
// correction, the mean of all marginals minus its own marginal, is added to it. The corrections of all mini-buckets add
// up to zero.
#pragma once
#include "semiring.hpp"

namespace elimina {

template <class R>
inline constexpr bool matches = false;
template <class T>
inline constexpr bool matches<MinSum<T>> = true;
template <class T>
inline constexpr bool matches<LogSumExp<T>> = true;

// One cell of the correction of mini-bucket `number` of `count`, given the cell's marginals: their sum (added in the
// mini-buckets' order), the largest, and the mini-bucket's `marginal`. It is zero where a marginal is forbidden: an
// integer at `infinity` or above; a float that makes the mean infinite or no number. The k-th integer mean is
// floor((sum + k) / count): these add up to the sum (Hermite's identity). |sum| <= count x infinity. If mini-buckets
// have weights, which add up to 1, the mean is the sum times the weight of this one.
template <class R, class T>
ELIMINA_HD T matched_cell(const R& ring, T sum, T largest, T marginal, int number, int count) {
  if constexpr (is_integer<T>) {
    const bool allowed = largest < ring.infinity;
    const T total = allowed ? T(sum + number) : T(0);
    T mean = T(total / count);
    mean = T(mean - (total < T(mean * count)));
    return allowed ? T(mean - marginal) : T(0);
  } else {
    T mean;
    if constexpr (weighted<R>) mean = sum * ring.weight;
    else mean = sum / T(count);
    return mean - mean == T(0) ? mean - marginal : T(0);
  }
}

}  // namespace elimina
