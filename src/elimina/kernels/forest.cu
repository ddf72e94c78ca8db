// Small steps, many in one launch. A block takes a leaf and walks towards the root; at a step with several children only the
// block that finishes the last of them walks on. While a step is computed, the next one's record is already being fetched.
#include "rows.cuh"

namespace elimina {

// How to walk on from a step: the next step of this launch (-1: none), its record, and how many children it has in this launch.
enum LinkWord : int { kNext, kNextStart, kNextWords, kNextChildren, kLinkWords };

constexpr int kRecordWords = 2 * kThreads;  // the longest record; longer steps are launched alone

// Adds up every group-th value of d. The loads of kFlight of them are in flight together, those of the last few too.
template <int kFlight, class S, int kMost>
__device__ __forceinline__ void sum_up(const S& s, typename S::Sum& sum, const typename S::Value* (&from)[kMost],
                                       const int (&stride)[kMost], int domain, int lane, int group, int tables, int tables_a,
                                       int tables_ab, const typename S::Value* scales) {
  for (int d = lane; d < domain; d += kFlight * group) {
    typename S::Value values[kFlight][kMost];
#pragma unroll
    for (int u = 0; u < kFlight; ++u) {
#pragma unroll
      for (int t = 0; t < kMost; ++t) {
        if (t < tables) {
          if (u == 0 || d + u * group < domain) values[u][t] = *from[t];
          from[t] += stride[t];
        }
      }
    }
#pragma unroll
    for (int u = 0; u < kFlight; ++u) {
      if (u == 0 || d + u * group < domain) {
        if constexpr (S::scaled) {
#pragma unroll
          for (int t = 0; t < kMost; ++t)
            if (t < tables) values[u][t] *= scales[t];
        }
        s.add(sum, join<S, kMost>(s, values[u], tables, tables_a, tables_ab));
      }
    }
  }
}

template <class S, int kMost>
__device__ void small_step(const S& s, StepView step, typename S::Value* arena, const typename S::Value* scales,
                           Peaks<S>& seen) {
  using Value = typename S::Value;
  const int cells = int(step.cells()), domain = int(step[kDomain]), axes = int(step[kAxes]);
  const int tables = int(step[kTables]), tables_a = int(step[kTablesA]), tables_ab = tables_a + int(step[kTablesB]);
  // Lanes that share a cell, each with every group-th value of d.
  int group = 1;
  while (group < 32 && group < domain && cells * group * 2 <= kThreads) group *= 2;
  const int lane = int(threadIdx.x) % group;
  const int rounds = (cells * group + kThreads - 1) / kThreads;
  for (int round = 0; round < rounds; ++round) {
    const int cell = (round * kThreads + int(threadIdx.x)) / group;
    const bool valid = cell < cells;
    int index[kMost] = {}, out = 0;
    for (u32 axis = axes, rest = valid ? cell : 0; axis-- > 0;) {
      const u32 size = u32(step.size(axis)), quotient = rest / size, digit = rest - quotient * size;
      rest = quotient;
      out += int(digit) * int(step.out_stride(axis));
#pragma unroll
      for (int t = 0; t < kMost; ++t)
        if (t < tables) index[t] += int(digit) * int(step.table(t).stride(axis));
    }
    const Value* from[kMost];
    int stride[kMost];
#pragma unroll
    for (int t = 0; t < kMost; ++t) {
      if (t < tables) {
        stride[t] = int(step.table(t).domain_stride());
        from[t] = arena + step.table(t).offset() + index[t] + lane * stride[t];
        stride[t] *= group;
      }
    }
    typename S::Sum sum = s.start();
    if (valid) {
      if (kMost <= 4 && domain > group) {
        sum_up<kMost <= 4 ? 4 : 1>(s, sum, from, stride, domain, lane, group, tables, tables_a, tables_ab, scales);
      } else {
        sum_up<1>(s, sum, from, stride, domain, lane, group, tables, tables_a, tables_ab, scales);
      }
    }
    for (int mask = group / 2; mask; mask /= 2) merge(s, sum, exchange(sum, mask));
    if (valid && lane == 0) {
      const Value result = s.finish(sum);
      arena[step[kOut] + out] = result;
      if constexpr (S::scaled) seen.see(result);
    }
  }
}

template <class S>
__global__ void __launch_bounds__(kThreads)
    forest(const i64* __restrict__ words, i64 links_at, i64 starts_at, i64 leaves_at, i64 leaves, typename S::Value* arena,
           u64* peaks, i32* pending, i32* cursor, const i32* stop, typename S::Value parameter) {
  using Value = typename S::Value;
  __shared__ i64 records[2][kRecordWords];
  __shared__ Value scales[kRecordWords / kStrides];
  __shared__ u64 step_peaks[2];
  __shared__ int shared_leaf, shared_last;
  const S s = make_semiring<S>(parameter);
  const int thread = int(threadIdx.x);

  for (;;) {
    __syncthreads();
    if (thread == 0) shared_leaf = stopped(stop) ? int(leaves) : atomicAdd(cursor, 1);
    __syncthreads();
    if (shared_leaf >= leaves) return;
    i64 number = words[leaves_at + shared_leaf];
    const i64 start = words[starts_at + number];
    for (int i = thread; i < words[start + kWords]; i += kThreads) records[0][i] = words[start + i];
    i64 link[kLinkWords];
    for (int i = 0; i < kLinkWords; ++i) link[i] = words[links_at + number * kLinkWords + i];
    __syncthreads();

    for (int buffer = 0;; buffer ^= 1) {
      const StepView step{records[buffer]};
      const i64 next = link[kNext], next_start = link[kNextStart], next_words = link[kNextWords];
      const bool shared_parent = link[kNextChildren] > 1;
      i64 fetched[2] = {};
      if (next >= 0) {
        for (int i = 0; i < 2; ++i)
          if (i * kThreads + thread < next_words) fetched[i] = words[next_start + i * kThreads + thread];
        for (int i = 0; i < kLinkWords; ++i) link[i] = words[links_at + next * kLinkWords + i];
      }
      if constexpr (S::scaled) {
        if (thread < step[kTables]) scales[thread] = scale_of<S>(step.table(thread), peaks);
        if (thread == 0) step_peaks[0] = 0, step_peaks[1] = u64(__double_as_longlong(std::numeric_limits<double>::infinity()));
        __syncthreads();
      }
      Peaks<S> seen;
      if (step[kTables] <= 2) {
        small_step<S, 2>(s, step, arena, scales, seen);
      } else if (step[kTables] <= 4) {
        small_step<S, 4>(s, step, arena, scales, seen);
      } else {
        small_step<S, 16>(s, step, arena, scales, seen);
      }
      for (int i = 0; i < 2; ++i) records[buffer ^ 1][i * kThreads + thread] = fetched[i];
      if constexpr (S::scaled) {
        seen.publish(step_peaks);
        __syncthreads();
        if (thread < 2) peaks[2 * number + thread] = step_peaks[thread];
      }
      if (next < 0) break;
      if (shared_parent) {
        __threadfence();
        __syncthreads();
        if (thread == 0) {
          shared_last = atomicSub(pending + next, 1) == 1;
          __threadfence();
        }
        __syncthreads();
        if (!shared_last) break;
      } else {
        __syncthreads();
      }
      number = next;
    }
  }
}

}  // namespace elimina
