// Common part of all kernels: semirings, fused element operations, loads of scaled messages, output ranges.
#pragma once
#include <elimina/program.hpp>
#include <elimina/semiring.hpp>

#include "intrinsics.cuh"

namespace elimina {

constexpr int kThreads = 256;
constexpr int kProductThreads = 128;

template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;

template <class S>
__device__ S semiring_of(typename S::Value parameter, StepView step) {
  return weighed(semiring_of<S>(parameter), step.weight());
}

// sum (+)= a (x) b, in one or two instructions where the hardware has them. A comparison and a selection would take one instruction more.
template <class S>
__device__ __forceinline__ void fold(const S& s, typename S::Sum& sum, typename S::Value a, typename S::Value b) {
  if constexpr (same<S, MinSum<i32>>) {
    sum = min_of_sum(a, b, sum);
  } else if constexpr (same<S, MinSum<float>>) {
    sum = fminf(a + b, sum);
  } else {
    s.add(sum, s.combine(a, b));
  }
}

template <class T>
__device__ T exchange(T value, int lane_mask) {
  if constexpr (requires { value.peak; }) {
    return {exchange(value.peak, lane_mask), exchange(value.total, lane_mask)};
  } else {
    return T(exchange_lanes(value, lane_mask));
  }
}

// 2^-scale_exponent of the largest value of a range, given by its bits (the first word of the range).
template <class T>
__device__ __forceinline__ T scale_of_bits(u64 peak) {
  if (peak == 0) return T(1);
  constexpr int kMost = kMostExponent<T>;
  const int exponent = min(max(int(peak >> 52) - 1023, -kMost), kMost);
  if constexpr (sizeof(T) == 4) {
    return __int_as_float((127 - exponent) << 23);
  } else {
    return __longlong_as_double(i64(1023 - exponent) << 52);
  }
}

// Number that readers multiply a table by: 1 for factors and unscaled semirings, else the power of two that the
// message's largest value determines.
template <class S>
__device__ __forceinline__ typename S::Value scale_of(TableView table, const u64* peaks) {
  if constexpr (S::scaled) {
    return table.source() < 0 ? typename S::Value(1) : scale_of_bits<typename S::Value>(peaks[2 * table.source()]);
  } else {
    return typename S::Value(1);
  }
}

// Largest and smallest positive value so far, of a scaled semiring.
template <class S>
struct Peaks {
  typename S::Value high = 0, low = S::scaled ? std::numeric_limits<typename S::Value>::infinity() : typename S::Value(0);
  __device__ void see(typename S::Value value) {
    high = value > high ? value : high;
    low = value > 0 && value < low ? value : low;
  }
  __device__ void reduce_warp() {
    for (int mask = 16; mask; mask /= 2) {
      const typename S::Value other_high = exchange(high, mask), other_low = exchange(low, mask);
      high = other_high > high ? other_high : high;
      low = other_low < low ? other_low : low;
    }
  }
  __device__ void write(u64* range) const {
    range[0] = u64(__double_as_longlong(double(high)));
    range[1] = u64(__double_as_longlong(double(low)));
  }
  // Bit patterns of positive numbers have the same order as the numbers, so they are compared as integers.
  __device__ void add_to(u64* range) const {
    if (!(high > 0)) return;
    atomicMax(range, u64(__double_as_longlong(double(high))));
    atomicMin(range + 1, u64(__double_as_longlong(double(low))));
  }
  __device__ void publish(u64* range) {
    reduce_warp();
    if (threadIdx.x % 32 == 0) add_to(range);
  }
};

__device__ __forceinline__ bool stopped(const i32* stop) { return *static_cast<const volatile i32*>(stop) != 0; }

}  // namespace elimina
