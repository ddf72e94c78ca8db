// The innermost loops of matrix products, compiled once for each instruction set, with fused multiply-adds if it has
// them.
#include "exec/dense/product_tile.hpp"

#include <cstring>

namespace elimina::ELIMINA_ISA {
namespace {

template <class V>
void multiply(const V* a, const V* b, i64 depth, V* tile) {
  using Wide = Vector<V>;
  constexpr int lanes = kLanes<V>;
  Wide sums[kProductRows][kProductVectors] = {};
  for (i64 d = 0; d < depth; ++d, a += kProductRows, b += kProductColumns<V>) {
    Wide right[kProductVectors];
#pragma GCC unroll 3
    for (int j = 0; j < kProductVectors; ++j) std::memcpy(&right[j], b + j * lanes, sizeof(Wide));
#pragma GCC unroll 8
    for (int i = 0; i < kProductRows; ++i)
#pragma GCC unroll 3
      for (int j = 0; j < kProductVectors; ++j) sums[i][j] += a[i] * right[j];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kProductRows; ++i)
#pragma GCC unroll 3
    for (int j = 0; j < kProductVectors; ++j)
      std::memcpy(tile + (i * kProductVectors + j) * lanes, &sums[i][j], sizeof(Wide));
}

}  // namespace

void multiply_tile(const double* a, const double* b, i64 depth, double* tile) { multiply(a, b, depth, tile); }
void multiply_tile(const float* a, const float* b, i64 depth, float* tile) { multiply(a, b, depth, tile); }

}  // namespace elimina::ELIMINA_ISA
