// Instructions that CUDA and HIP name differently: on lanes, on pairs of 16-bit numbers, and for copies to shared memory.
#pragma once
#include <elimina/config.hpp>

namespace elimina {

#if defined(__HIP__)

// A warp of 32 threads is a wave on some of AMD's GPUs, and half a wave on the others.
template <class T>
__device__ __forceinline__ T exchange_lanes(T value, int lane_mask) {
  return __shfl_xor(value, lane_mask, 32);
}
template <class T>
__device__ __forceinline__ T lower_lane(T value, u32 distance) {
  return __shfl_up(value, distance, 32);
}
__device__ __forceinline__ bool any_lane(u32 mask, bool x) { return (u32(__ballot(x) >> (__lane_id() & 32u)) & mask) != 0; }

__device__ __forceinline__ i32 min_of_sum(i32 a, i32 b, i32 limit) { return min(a + b, limit); }
__device__ __forceinline__ u32 sum_of_pairs(u32 a, u32 b) { return ((a + b) & 0xffffu) | ((a & 0xffff0000u) + (b & 0xffff0000u)); }
__device__ __forceinline__ u32 min_of_pairs_sum(u32 a, u32 b, u32 limit) {
  const u32 sum = sum_of_pairs(a, b);
  const i32 low = min(i32(i16(sum)), i32(i16(limit))), high = min(i32(sum) >> 16, i32(limit) >> 16);
  return (u32(low) & 0xffffu) | u32(high) << 16;
}

__device__ __forceinline__ void copy_async(int4* to, u64 from) { *to = *reinterpret_cast<const int4*>(from); }
__device__ __forceinline__ void commit_copies() {}
template <int kPending>
__device__ __forceinline__ void await_copies() {}

// A barrier for all threads of a block. They may wait at different points of the code, because the barrier of these GPUs
// only counts the waves that arrive.
template <int kThreads>
__device__ __forceinline__ void meet() {
  __syncthreads();
}

template <class T>
__device__ __forceinline__ void hide(T& value) {
  asm volatile("" : "+v"(value));
}
__device__ __forceinline__ void sleep_nanoseconds(u32) { __builtin_amdgcn_s_sleep(1); }

#else

template <class T>
__device__ __forceinline__ T exchange_lanes(T value, int lane_mask) {
  return __shfl_xor_sync(~0u, value, lane_mask);
}
template <class T>
__device__ __forceinline__ T lower_lane(T value, u32 distance) {
  return __shfl_up_sync(~0u, value, distance);
}
__device__ __forceinline__ bool any_lane(u32 mask, bool x) { return __any_sync(mask, x); }

__device__ __forceinline__ i32 min_of_sum(i32 a, i32 b, i32 limit) { return __viaddmin_s32(a, b, limit); }
__device__ __forceinline__ u32 sum_of_pairs(u32 a, u32 b) { return __vadd2(a, b); }
__device__ __forceinline__ u32 min_of_pairs_sum(u32 a, u32 b, u32 limit) { return __viaddmin_s16x2(a, b, limit); }

__device__ __forceinline__ void copy_async(int4* to, u64 from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `kPending` groups of copies are unfinished.
template <int kPending>
__device__ __forceinline__ void await_copies() {
  if constexpr (kPending == 0) {
    asm volatile("cp.async.wait_all;" ::: "memory");
  } else {
    asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
  }
}

// A barrier of `kThreads` threads, which may wait at different points of the code.
template <int kThreads>
__device__ __forceinline__ void meet() {
  asm volatile("barrier.sync 1, %0;" ::"n"(kThreads) : "memory");
}

// Hides a value's origin from the compiler, which would keep multiples of it in registers.
__device__ __forceinline__ void hide(i64& value) { asm volatile("" : "+l"(value)); }
__device__ __forceinline__ void hide(int& value) { asm volatile("" : "+r"(value)); }
__device__ __forceinline__ void sleep_nanoseconds(u32 nanoseconds) { __nanosleep(nanoseconds); }

#endif

}  // namespace elimina
