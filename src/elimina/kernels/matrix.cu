// The parts of a cuBLAS step around its product: the factor of the product, and the range of the output.
#include "tile_parts.cuh"

namespace elimina {

// The library reads messages as they are, and multiplies by both scales at the end: see Scales in elimina/inference/execution.py.
template <class S>
__global__ void product_scale(int a_source, int b_source, const u64* peaks, typename S::Value* scale) {
  const auto exponent = [&](int source) {
    return source < 0 ? 0 : scale_exponent<typename S::Value>(__longlong_as_double(i64(peaks[2 * i64(source)])));
  };
  *scale = typename S::Value(ldexp(1.0, -exponent(a_source) - exponent(b_source)));
}

// The largest and the smallest positive value of the output, kLanes neighbouring cells at a time. The last axis is the fast
// one.
template <class S, int kLanes>
__global__ void __launch_bounds__(kThreads) extremes(const i64* __restrict__ record, int number, const typename S::Value* arena, u64* peaks, const i32* stop) {
  using Value = typename S::Value;
  if (__syncthreads_or(stopped(stop))) return;
  const StepView step{record};
  const int lo = int(step[kAxes]) - 1;
  const u64 words = u64(step[kLoCells]) / kLanes, all = words * u64(step[kOuterCells] * step[kMidCells]);
  Peaks<S> seen;
#pragma unroll 4
  for (u64 word = u64(blockIdx.x) * kThreads + threadIdx.x; word < all; word += u64(gridDim.x) * kThreads) {
    u64 row = all >> 32 ? divide_long(word, words) : u64(u32(word) / u32(words));
    const Value* from = arena + step[kOut] + i64(word - row * words) * kLanes;
#pragma unroll 1
    for (int axis = lo - 1; axis > 0; --axis) {
      const u64 size = u64(step.size(axis)), rest = row >> 32 ? divide_long(row, size) : u64(u32(row) / u32(size));
      from += i64(row - rest * size) * step.out_stride(axis);
      row = rest;
    }
    from += i64(row) * step.out_stride(0);
    Value values[kLanes];
    if constexpr (kLanes > 1) {
      copy_words(values, from);
    } else {
      values[0] = *from;
    }
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) seen.see(values[lane]);
  }
  // Atomics on one place take turns: one of each kind for a block, not for a warp.
  constexpr int kWarps = kThreads / 32;
  __shared__ Value highs[kWarps], lows[kWarps];
  seen.reduce_warp();
  if (threadIdx.x % 32 == 0) {
    highs[threadIdx.x / 32] = seen.high;
    lows[threadIdx.x / 32] = seen.low;
  }
  __syncthreads();
  if (threadIdx.x >= 32) return;
  Peaks<S> block;
  if (threadIdx.x < kWarps) {
    block.high = highs[threadIdx.x];
    block.low = lows[threadIdx.x];
  }
  block.publish(peaks + 2 * number);
}

}  // namespace elimina
