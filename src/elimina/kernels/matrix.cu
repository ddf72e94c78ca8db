// The parts of a cuBLAS step around its product: the factor of the product, and the ranges of its tables.
#include "tile_parts.cuh"

namespace elimina {

// cuBLAS reads messages unscaled, and multiplies by both scales at the end: see Scales in elimina/running/scales.py.
template <class S>
__global__ void product_scale(int a_source, int b_source, const u64* peaks, typename S::Value* scale) {
  const auto exponent = [&](int source) {
    return source < 0 ? 0 : scale_exponent<typename S::Value>(__longlong_as_double(i64(peaks[2 * i64(source)])));
  };
  *scale = typename S::Value(ldexp(1.0, -exponent(a_source) - exponent(b_source)));
}

// Adds a block's largest and smallest positive value to a range. Atomic operations on one address run one after
// another, so a block combines the values of its warps before it performs one operation for each end of the range.
template <class S>
__device__ void publish_block(Peaks<S> seen, u64* range) {
  constexpr int kWarps = kThreads / 32;
  __shared__ typename S::Value highs[kWarps], lows[kWarps];
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
  block.publish(range);
}

// Range of some cells of a product's operand.
template <class S>
__global__ void __launch_bounds__(kThreads) cells_range(const typename S::Value* cells, i64 count, u64* range) {
  Peaks<S> seen;
#pragma unroll 4
  for (i64 at = i64(blockIdx.x) * kThreads + threadIdx.x; at < count; at += i64(gridDim.x) * kThreads) seen.see(cells[at]);
  publish_block(seen, range);
}

// Exponents of powers of two that bound the values of a table as its reader scales them: 2^low <= value < 2^high.
template <class Value>
__device__ void exponents_of(const u64* range, bool is_message, int& low, int& high) {
  const double largest = __longlong_as_double(i64(range[0]));
  const int scale = is_message ? scale_exponent<Value>(largest) : 0;
  low = ilogb(__longlong_as_double(i64(range[1]))) - scale;
  high = ilogb(largest) + 1 - scale;
}

// Returns whether the ranges of both sides bound the output closely enough; if so, writes the bounds to `range`.
template <class Value>
__device__ bool is_bounded(const u64* lhs, const u64* rhs, int messages, int depth_bits, int most_bits, u64* range) {
  // No bounds follow from ranges with zeros or infinities, or from ranges that were never set.
  for (const u64* side : {lhs, rhs}) {
    const double high = __longlong_as_double(i64(side[0])), low = __longlong_as_double(i64(side[1]));
    if (!(low > 0 && low <= high && high < std::numeric_limits<double>::infinity())) return false;
  }
  int lows[2], highs[2];
  exponents_of<Value>(lhs, messages & 1, lows[0], highs[0]);
  exponents_of<Value>(rhs, messages & 2, lows[1], highs[1]);
  const int low = lows[0] + lows[1], high = highs[0] + highs[1] + depth_bits;
  if (high - low > most_bits || low < -kMostExponent<Value> || high > kMostExponent<Value>) return false;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    range[0] = u64(__double_as_longlong(ldexp(1.0, high)));
    range[1] = u64(__double_as_longlong(ldexp(1.0, low)));
  }
  return true;
}

// Largest and smallest positive value of the output, or bounds on them; kLanes neighbouring cells at a time. The last axis is the
// fast one.
template <class S, int kLanes>
__global__ void __launch_bounds__(kThreads) extremes(const i64* __restrict__ record, int number, const typename S::Value* arena, u64* peaks, const i32* stop,
                                                     const u64* lhs, const u64* rhs, int messages, int depth_bits, int most_bits) {
  using Value = typename S::Value;
  if (is_bounded<Value>(lhs, rhs, messages, depth_bits, most_bits, peaks + 2 * number)) return;
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
  publish_block(seen, peaks + 2 * number);
}

}  // namespace elimina
