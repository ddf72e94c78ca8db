// The best assignment: one block walks the steps from the roots to the leaves. Each value is the first of the best
// ones, given the values of the step's axes. Values are compared by the same sums of the same tables, in the same
// association, as in the step's message.
#include "rows.cuh"

namespace elimina {

template <class S, int kMost>
__device__ typename S::Value row(const S& s, StepView step, const typename S::Value* arena, const i64* bases,
                                 const typename S::Value* scales, i64 d) {
  const int tables = int(step[kTables]);
  typename S::Value values[kMost];
#pragma unroll
  for (int t = 0; t < kMost; ++t) {
    if (t < tables) {
      values[t] = arena[bases[t] + d * step.table(t).domain_stride()];
      if constexpr (S::scaled) values[t] *= scales[t];
    }
  }
  return join<S, kMost>(s, values, tables, int(step[kTablesA]), int(step[kTablesA] + step[kTablesB]));
}

template <class S>
__global__ void __launch_bounds__(kThreads)
    decode(const i64* __restrict__ words, i64 order_at, i64 steps, const typename S::Value* arena, const u64* peaks,
           i32* assignment, const i32* stop, typename S::Value parameter) {
  using Value = typename S::Value;
  constexpr int kMostTables = 16, kCached = 1024;
  extern __shared__ __align__(16) i64 shared[];  // two records, each as long as the longest
  __shared__ i64 digits[kCached], bases[kMostTables];
  __shared__ Value scales[kMostTables], warp_values[kThreads / 32];
  __shared__ i64 warp_best[kThreads / 32];
  const S s = semiring_of<S>(parameter);
  const int thread = int(threadIdx.x), warp = thread / 32;
  const i64 longest = words[order_at];
  const i64* order = words + order_at + 1;  // where each record starts

  for (int i = thread; steps > 0 && i < words[order[0]]; i += kThreads) shared[i] = words[order[0] + i];
  for (i64 number = 0; number < steps; ++number) {
    const StepView step{shared + number % 2 * longest};
    __syncthreads();
    if (stopped(stop)) return;
    const i64 axes = step[kAxes], domain = step[kDomain], tables = step[kTables];
    for (int i = thread; i < axes; i += kThreads) digits[i] = assignment[step.variable(i)];
    i64 fetched = 0, next_start = 0, next_words = 0;
    if (number + 1 < steps) {
      next_start = order[number + 1];
      next_words = words[next_start];
      if (thread < next_words) fetched = words[next_start + thread];
    }
    __syncthreads();
    if (thread < tables) {
      const TableView table = step.table(thread);
      i64 base = table.offset();
      for (int axis = 0; axis < axes; ++axis) base += digits[axis] * table.stride(axis);
      bases[thread] = base;
      scales[thread] = scale_of<S>(table, peaks);
    }
    __syncthreads();

    Value best_value{};
    i64 best = domain;
    for (i64 d = thread; d < domain; d += kThreads) {
      const Value value = tables <= 4 ? row<S, 4>(s, step, arena, bases, scales, d)
                                      : row<S, kMostTables>(s, step, arena, bases, scales, d);
      if (best == domain || s.better(value, best_value)) best = d, best_value = value;
    }
    const auto consider = [&](Value other_value, i64 other) {
      if (other == domain) return;
      if (best == domain || s.better(other_value, best_value) || (!s.better(best_value, other_value) && other < best)) {
        best = other;
        best_value = other_value;
      }
    };
    for (int mask = 16; mask; mask /= 2) consider(exchange(best_value, mask), exchange(best, mask));
    if (domain > 32) {
      if (thread % 32 == 0) warp_best[warp] = best, warp_values[warp] = best_value;
      __syncthreads();
      if (thread == 0)
        for (int other = 1; other < kThreads / 32; ++other) consider(warp_values[other], warp_best[other]);
    }
    if (thread == 0) step.assign(assignment, best);
    i64* following = shared + (number + 1) % 2 * longest;
    if (thread < next_words) following[thread] = fetched;
    for (int i = kThreads + thread; i < next_words; i += kThreads) following[i] = words[next_start + i];
  }
}

}  // namespace elimina
