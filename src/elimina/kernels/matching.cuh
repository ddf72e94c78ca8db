// One cell of a moment-matching step from the values of all marginals.
#pragma once
#include <elimina/matching.hpp>

#include "common.cuh"

namespace elimina {

template <class S, int kMost>
__device__ __forceinline__ typename S::Value matched(const S& s, const typename S::Value (&values)[kMost], int number, int count) {
  typename S::Value sum = values[0], largest = values[0], marginal = values[0];
#pragma unroll
  for (int t = 1; t < kMost; ++t) {
    if (t < count) {
      sum = s.combine(sum, values[t]);
      largest = values[t] > largest ? values[t] : largest;
      if (t == number) marginal = values[t];
    }
  }
  return matched_cell(s, sum, largest, marginal, number, count);
}

}  // namespace elimina
