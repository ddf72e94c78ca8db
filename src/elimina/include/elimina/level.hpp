// Moment matching: cost shifting between the mini-buckets of a bucket (Ihler, Flerova, Dechter and Otten 2012, "Join-graph
// based cost-shifting schemes"). Each mini-bucket has a marginal over what all of them share; the difference of the marginals' mean
// from its own one is added to it. The differences of all mini-buckets add up to zero.
#pragma once
#include "semiring.hpp"

namespace elimina {

template <class R>
inline constexpr bool levels = false;
template <class T>
inline constexpr bool levels<MinSum<T>> = true;
template <class T>
inline constexpr bool levels<LogSumExp<T>> = true;

// One cell of mini-bucket `number` of `count`, given the sum of all marginals there in their order, the largest, and its own. It is
// zero where a marginal is forbidden: an integer at `infinity` or above; a float that makes the mean infinite or no number. The k-th
// integer mean is floor((sum + k) / count): these add up to the sum (Hermite's identity). |sum| <= count x infinity. Where mini-buckets
// have weights, each gets its share of the sum by its own, and the shares are 1 together.
template <class R, class T>
ELIMINA_HD T level_cell(const R& ring, T sum, T largest, T marginal, int number, int count) {
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
