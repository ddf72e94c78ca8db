// Parts of the kernel benchmarks besides the kernels: data, and the rate of the inner loop's instructions alone.
#include "tile.cu"

namespace elimina {

// Values 0 ... 99 without a pattern.
template <class Cell>
__global__ void fill(Cell* cells, i64 count) {
  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += i64(gridDim.x) * blockDim.x) {
    u64 bits = u64(i) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
    cells[i] = Cell((bits >> 33) % 100);
  }
}

// Keeps the device waiting while the host queues what is to be measured.
__global__ void pause(long long cycles) {
  const long long began = clock64();
  while (clock64() - began < cycles) {
  }
}

// 32 sums a thread, as in the product of two small tables, but everything in registers. Each addition has a sum of the round before
// as its operand: with operands that stay, the compiler would make the additions once for several rounds.
template <class P>
__global__ void __launch_bounds__(kThreads) rate(typename P::Cell* out, int rounds, typename P::Cell parameter) {
  constexpr int kRows = 8, kLanes = 4;
  const P policy(parameter);
  typename P::Sum sums[kRows][kLanes];
  typename P::Lane right[kLanes];
  for (int j = 0; j < kLanes; ++j) right[j] = P::splat(typename P::Cell(blockIdx.x % 7 + j));
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kLanes; ++j) sums[i][j] = P::splat(typename P::Cell(threadIdx.x + i));
#pragma unroll 4
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int j = 0; j < kLanes; ++j)
#pragma unroll
      for (int i = 0; i < kRows; ++i) policy.fold(sums[i][j], sums[i][(j + 1) % kLanes], right[j]);
  }
  typename P::Sum total = policy.start();
#pragma unroll
  for (int i = 0; i < kRows; ++i)
#pragma unroll
    for (int j = 0; j < kLanes; ++j) policy.fold(total, sums[i][j], P::splat(0));
  out[i64(blockIdx.x) * kThreads + threadIdx.x] = P::cell(policy.finish(total));
}

}  // namespace elimina
