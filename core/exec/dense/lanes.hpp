// Vectors of an instruction set.
#pragma once
#include "elimina/config.hpp"

namespace elimina::ELIMINA_ISA {

// Vectors have the width of the registers, because GCC keeps wider ones in memory. `kPermutes`: any permutation of one
// or two vectors is one instruction.
#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
constexpr bool kPermutes = true;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
constexpr bool kPermutes = false;
#else
constexpr int kVectorBytes = 16;
constexpr bool kPermutes = false;
#endif

template <class V>
struct VectorOf {
  typedef V type __attribute__((vector_size(kVectorBytes)));
};
template <class V>
using Vector = typename VectorOf<V>::type;
template <class V>
constexpr int kLanes = kVectorBytes / sizeof(V);

}  // namespace elimina::ELIMINA_ISA
