// Small steps, many in one launch. A block takes a step from a queue and walks on to the step that reads its output, if that is
// the only reader; at a step that waits for several only the block that finishes the last of them walks on. While a step is
// computed, the next one's record is already being fetched. Where an output has several readers, those that have nothing left to
// wait for go to the queue. A step of much work is cut into chunks of output cells, which several blocks compute.
#include "level.cuh"
#include "rows.cuh"

namespace elimina {

// Link from a step to the next: the only reader in this launch (kNone: there is none; kSeveral: a list of readers is at kNextStart,
// with kNextWords entries), its record's start and length, and how many steps of this launch it waits for. These words are fetched a
// step ahead. Then of the step itself: how many it waits for, its chunks (1, if blocks walk to it), and the output cells of a chunk.
enum LinkWord : int { kNext, kNextStart, kNextWords, kNextChildren, kWalkWords, kChildren = kWalkWords, kChunks, kChunkCells, kLinkWords };
constexpr i64 kNone = -1, kSeveral = -2;

// An entry of the queue: a step and a chunk of it; -1 as long as it is empty.
constexpr int kChunkBits = 20;

enum CounterWord : int { kTaken, kFilled, kLeft };  // slots taken and filled, steps that are not finished

constexpr int kRecordWords = 2 * kThreads;  // the longest record; longer steps are launched alone

// Adds up every group-th value of d. The loads of kFlight of them are in flight together, those of the last few too. `own`: the
// marginal that a moment-matching step is for; -1 in others. Only with kLevels there are any.
template <int kFlight, bool kLevels, class S, int kMost>
__device__ __forceinline__ void sum_up(const S& s, typename S::Sum& sum, const typename S::Value* (&from)[kMost],
                                       const int (&stride)[kMost], int domain, int lane, int group, int tables, int tables_a,
                                       int tables_ab, int own, const typename S::Value* scales) {
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
        if constexpr (kLevels) {
          if (own >= 0) {
            s.add(sum, levelled(s, values[u], own, tables));
            continue;
          }
        }
        s.add(sum, join<S, kMost>(s, values[u], tables, tables_a, tables_ab));
      }
    }
  }
}

template <class S, int kMost, bool kLevels>
__device__ void small_step(const S& s, StepView step, int first, int cells, typename S::Value* arena,
                           const typename S::Value* scales, Peaks<S>& seen) {
  using Value = typename S::Value;
  const int domain = int(step[kDomain]), axes = int(step[kAxes]);
  const int tables = int(step[kTables]), tables_a = int(step[kTablesA]), tables_ab = tables_a + int(step[kTablesB]);
  const int own = kLevels && step[kVariable] == kLevel ? tables_a : -1;
  // Lanes that share a cell, each with every group-th value of d.
  int group = 1;
  while (group < 32 && group < domain && cells * group * 2 <= kThreads) group *= 2;
  const int lane = int(threadIdx.x) % group;
  const int rounds = (cells * group + kThreads - 1) / kThreads;
  for (int round = 0; round < rounds; ++round) {
    const int cell = (round * kThreads + int(threadIdx.x)) / group;
    const bool valid = cell < cells;
    int index[kMost] = {}, out = 0;
    for (u32 axis = axes, rest = first + (valid ? cell : 0); axis-- > 0;) {
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
        sum_up<kMost <= 4 ? 4 : 1, kLevels>(s, sum, from, stride, domain, lane, group, tables, tables_a, tables_ab, own, scales);
      } else {
        sum_up<1, kLevels>(s, sum, from, stride, domain, lane, group, tables, tables_a, tables_ab, own, scales);
      }
    }
    for (int mask = group / 2; mask; mask /= 2) s.add(sum, exchange(sum, mask));
    if (valid && lane == 0) {
      const Value result = s.finish(sum);
      arena[step[kOut] + out] = result;
      if constexpr (S::scaled) seen.see(result);
    }
  }
}

// Puts the readers of a finished step that wait for nothing else into the queue, but for the first chunk of the first of them, which
// is returned (-1: none). One warp.
__device__ __noinline__ i64 release(const i64* readers, i64 count, const i64* links, i32* pending, volatile i64* queue, i32* counters) {
  i64 kept = -1;
  for (i64 base = 0; base < count; base += 32) {
    const i64 at = base + threadIdx.x;
    i64 reader = at < count ? readers[at] : -1;
    if (reader >= 0 && links[reader * kLinkWords + kChildren] > 1 && atomicSub(pending + reader, 1) != 1) reader = -1;
    const u32 ready = __ballot_sync(~0u, reader >= 0);
    if (!ready) continue;
    int first = 0;
    if (kept < 0) {
      const int chosen = __ffs(int(ready)) - 1;
      kept = __shfl_sync(~0u, reader, chosen) << kChunkBits;
      first = int(threadIdx.x) == chosen;
    }
    const int chunks = reader >= 0 ? int(links[reader * kLinkWords + kChunks]) - first : 0;
    int before = chunks;
    for (int step = 1; step < 32; step *= 2) {
      const int other = __shfl_up_sync(~0u, before, step);
      if (int(threadIdx.x) >= step) before += other;
    }
    const int total = __shfl_sync(~0u, before, 31);
    int place = 0;
    if (threadIdx.x == 0) place = atomicAdd(counters + kFilled, total);
    place = __shfl_sync(~0u, place, 0) + before - chunks;
    __threadfence();
    for (int i = 0; i < chunks; ++i) queue[place + i] = reader << kChunkBits | i64(first + i);
  }
  return kept;
}

// The next entry of the queue; -1 once nothing more can come.
__device__ __noinline__ i64 take(const volatile i64* queue, i64 ready, i64 slots, i32* counters, const i32* stop) {
  const i64 slot = stopped(stop) ? slots : atomicAdd(counters + kTaken, 1);
  if (slot >= slots) return -1;
  if (slot < ready) return queue[slot];
  i64 item;
  while ((item = queue[slot]) < 0) {
    if (*static_cast<volatile i32*>(counters + kLeft) == 0 || stopped(stop)) return -1;
    __nanosleep(100);
  }
  __threadfence();
  return item;
}

// `pending`: for each of the steps how many it waits for, then how many of its chunks are not finished. kTree: each step has one
// chunk and one reader at most. kLevels: some steps match moments. In a chain of small steps even code that is only jumped over
// takes its time.
template <class S, bool kTree, bool kLevels>
__global__ void __launch_bounds__(kThreads)
    forest(const i64* __restrict__ words, i64 links_at, i64 starts_at, i64* queue, i64 ready, i64 slots, i64 steps, i32* counters,
           i32* pending, typename S::Value* arena, u64* peaks, const i32* stop, typename S::Value parameter) {
  using Value = typename S::Value;
  __shared__ i64 records[2][kRecordWords];
  __shared__ Value scales[kRecordWords / kStrides];
  __shared__ u64 step_peaks[2];
  __shared__ i64 shared_item;
  __shared__ int shared_last;
  const int thread = int(threadIdx.x);
  const i64* links = words + links_at;
  i64 item = -1;  // taken over from `release`

  for (;;) {
    __syncthreads();
    if (thread == 0) shared_item = item >= 0 ? item : take(queue, ready, slots, counters, stop);
    __syncthreads();
    item = shared_item;
    if (item < 0) return;
    i64 number = item >> kChunkBits;
    const i64 chunk = item & ((i64(1) << kChunkBits) - 1);
    item = -1;
    const i64 start = words[starts_at + number];
    for (int i = thread; i < words[start + kWords]; i += kThreads) records[0][i] = words[start + i];
    i64 link[kWalkWords];
    for (int i = 0; i < kWalkWords; ++i) link[i] = links[number * kLinkWords + i];
    int chunks = kTree ? 1 : int(links[number * kLinkWords + kChunks]);
    const int chunk_cells = int(links[number * kLinkWords + kChunkCells]);
    __syncthreads();

    for (int buffer = 0;; buffer ^= 1) {
      const StepView step{records[buffer]};
      const S s = make_semiring<S>(parameter, step);
      const i64 next = link[kNext], next_start = link[kNextStart], next_words = link[kNextWords];
      const bool shared_next = link[kNextChildren] > 1;
      const int first = !kTree && chunks > 1 ? int(chunk) * chunk_cells : 0;
      const int cells = !kTree && chunks > 1 ? min(chunk_cells, int(step.cells()) - first) : int(step.cells());
      i64 fetched[2] = {};
      if (next >= 0) {
        for (int i = 0; i < 2; ++i)
          if (i * kThreads + thread < next_words) fetched[i] = words[next_start + i * kThreads + thread];
        for (int i = 0; i < kWalkWords; ++i) link[i] = links[next * kLinkWords + i];
      }
      if constexpr (S::scaled) {
        if (thread < step[kTables]) scales[thread] = scale_of<S>(step.table(thread), peaks);
        if (thread == 0) step_peaks[0] = 0, step_peaks[1] = u64(__double_as_longlong(std::numeric_limits<double>::infinity()));
        __syncthreads();
      }
      Peaks<S> seen;
      if (step[kTables] <= 2) {
        small_step<S, 2, kLevels>(s, step, first, cells, arena, scales, seen);
      } else if (step[kTables] == 3) {
        small_step<S, 3, kLevels>(s, step, first, cells, arena, scales, seen);
      } else if (step[kTables] == 4) {
        small_step<S, 4, kLevels>(s, step, first, cells, arena, scales, seen);
      } else {
        small_step<S, 16, kLevels>(s, step, first, cells, arena, scales, seen);
      }
      for (int i = 0; i < 2; ++i) records[buffer ^ 1][i * kThreads + thread] = fetched[i];
      if constexpr (S::scaled) {
        if (!kTree && chunks > 1) {
          seen.publish(peaks + 2 * number);
        } else {
          seen.publish(step_peaks);
          __syncthreads();
          if (thread < 2) peaks[2 * number + thread] = step_peaks[thread];
        }
      }
      if (!kTree && chunks > 1) {
        __threadfence();
        __syncthreads();
        if (thread == 0) {
          shared_last = atomicSub(pending + steps + number, 1) == 1;
          __threadfence();
        }
        __syncthreads();
        if (!shared_last) break;
      }
      if (!kTree && thread == 0) atomicSub(counters + kLeft, 1);
      if (next == kNone) break;
      if (!kTree && next == kSeveral) {
        __threadfence();
        __syncthreads();
        if (thread < 32) item = release(words + next_start, next_words, links, pending, queue, counters);
        break;
      }
      if (shared_next) {
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
      if constexpr (!kTree) chunks = 1;
    }
  }
}

}  // namespace elimina
