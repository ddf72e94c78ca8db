// The innermost loops of matrix products.
#pragma once
#include "exec/dense/lanes.hpp"

namespace elimina::ELIMINA_ISA {

constexpr int kProductRows = kVectorBytes == 64 ? 8 : 4;
constexpr int kProductVectors = 3;
template <class V>
constexpr int kProductColumns = kProductVectors * kVectorBytes / int(sizeof(V));

// Sets tile[row][column] to the sum of a[d][row] b[d][column] over `depth` values of d. Compiled separately, with fused
// products and sums.
void multiply_tile(const double* a, const double* b, i64 depth, double* tile);
void multiply_tile(const float* a, const float* b, i64 depth, float* tile);

}  // namespace elimina::ELIMINA_ISA
