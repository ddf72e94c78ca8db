// The value of one combination of a step (an output cell and a value of d) from the values of its tables.
#pragma once
#include "common.cuh"

namespace elimina {

// lhs x rhs x streamed_1 x streamed_2 ... of the values v[0, tables), grouped as program.hpp says.
template <class S, int kMost>
__device__ __forceinline__ typename S::Value join(const S& s, const typename S::Value (&v)[kMost], int tables, int tables_a,
                                                  int tables_ab) {
  typename S::Value a = s.one(), b = s.one();
  if constexpr (typename S::Value(1) / 2 == 0) {
    // Integers give the same result in any association.
#pragma unroll
    for (int t = 0; t < kMost; ++t)
      if (t < tables) a = s.combine(a, v[t]);
    return a;
  } else {
#pragma unroll
    for (int t = 0; t < kMost; ++t) {
      if (t < tables_a) {
        a = s.combine(a, v[t]);
      } else if (t < tables_ab) {
        b = s.combine(b, v[t]);
      }
    }
    typename S::Value value = s.combine(a, b);
#pragma unroll
    for (int t = 0; t < kMost; ++t)
      if (t >= tables_ab && t < tables) value = s.combine(value, v[t]);
    return value;
  }
}

}  // namespace elimina
