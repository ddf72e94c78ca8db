// Small steps, many in one launch. Blocks take entries of a list. An entry is a step or, if the step has much work, a
// chunk of its output cells; steps come after those that they read. A block loads an entry's record, waits for the
// step's inputs, and computes the step. Then it continues with the step that reads the output, if this reader is small
// and no other step reads any of its inputs. If such a reader waits for several steps, the block that finishes the last
// of them continues. While a step is computed, the next step's record is already being fetched. An entry waits only for
// earlier entries, whose blocks are running, so no block waits forever.
#include "matching.cuh"
#include "rows.cuh"

namespace elimina {

// The words of a step's link. The first ones are fetched while the step before is computed. They describe the next step,
// with which blocks continue: its number (-1: none; kAwaited: none, and entries of this launch wait for this step), the
// start and length of its record, and the number of steps that it waits for. The others describe this step: its number
// of chunks (1 if blocks walk to it), the output cells of a chunk, the start and length of its record, and the list of
// the steps that its entries wait for.
enum LinkWord : int {
  kNext, kNextStart, kNextWords, kNextChildren, kWalkWords,
  kChunks = kWalkWords, kChunkCells, kStart, kLength, kWaits, kWaitsAt, kLinkWords
};
constexpr i64 kAwaited = -2;

constexpr int kChunkBits = 20;  // the low bits of an entry, which number a chunk of a step; the others number the step
constexpr int kResident = 2;    // blocks of a multiprocessor at a time; one in trees, where fewer blocks have work
constexpr int kNapNanoseconds = 20;

constexpr int kMostTables = 16;
constexpr int kRecordWords = 2 * kThreads;  // the longest record; longer steps are launched alone

// Adds up every group-th value of d, with kFlight loads in flight together. `mini_bucket`: the number of the mini-bucket that a
// moment-matching step (only with kMatches) corrects; -1 in other steps.
template <int kFlight, bool kMatches, class S, int kMost>
__device__ __forceinline__ void sum_up(const S& s, typename S::Sum& sum, const typename S::Value* (&from)[kMost],
                                       const int (&stride)[kMost], int domain, int lane, int group, int tables, int tables_a,
                                       int tables_ab, int mini_bucket, const typename S::Value (&scales)[kMost]) {
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
        if constexpr (kMatches) {
          if (mini_bucket >= 0) {
            s.add(sum, matched(s, values[u], mini_bucket, tables));
            continue;
          }
        }
        s.add(sum, join<S, kMost>(s, values[u], tables, tables_a, tables_ab));
      }
    }
  }
}

// Division of output cells among the threads of a block: `group` of them share a cell, each with every group-th value of d.
struct Division {
  int group = 1, lane, rounds;
  __device__ Division(int domain, int cells) {
    while (group < 32 && group < domain && cells * group * 2 <= kThreads) group *= 2;
    lane = int(threadIdx.x) % group;
    rounds = (cells * group + kThreads - 1) / kThreads;
  }
  __device__ int cell(int round) const { return (round * kThreads + int(threadIdx.x)) / group; }
};

// Splits the last digit, which is the position on `axis`, off the number `rest`.
__device__ __forceinline__ u32 last_digit(StepView step, u32 axis, u32& rest) {
  const u32 size = u32(step.size(axis));
  u32 quotient = __umulhi(rest, step.reciprocal(axis)), digit = rest - quotient * size;
  if (digit >= size) ++quotient, digit -= size;
  rest = quotient;
  return digit;
}

template <class S, int kMost, bool kMatches>
__device__ void small_step(const S& s, StepView step, int first, int cells, typename S::Value* arena, const u64* peaks,
                           Peaks<S>& seen) {
  using Value = typename S::Value;
  const int domain = int(step[kDomain]), axes = int(step[kAxes]);
  const int tables = int(step[kTables]), tables_a = int(step[kTablesA]), tables_ab = tables_a + int(step[kTablesB]);
  const int mini_bucket = kMatches && step[kVariable] == kMatching ? tables_a : -1;
  Value scales[kMost];
#pragma unroll
  for (int t = 0; t < kMost; ++t) scales[t] = t < tables ? scale_of<S>(step.table(t), peaks) : Value(1);
  const Division division(domain, cells);
  const int group = division.group, lane = division.lane;
  for (int round = 0; round < division.rounds; ++round) {
    const int cell = division.cell(round);
    const bool valid = cell < cells;
    int index[kMost] = {}, out = 0;
    for (u32 axis = axes, rest = first + (valid ? cell : 0); axis-- > 0;) {
      const u32 digit = last_digit(step, axis, rest);
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
      if (domain > group) {
        sum_up<4, kMatches>(s, sum, from, stride, domain, lane, group, tables, tables_a, tables_ab, mini_bucket, scales);
      } else {
        sum_up<1, kMatches>(s, sum, from, stride, domain, lane, group, tables, tables_a, tables_ab, mini_bucket, scales);
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

// Like small_step, for any number of tables. The state of the tables is in local memory, so that it takes no registers
// from other code. Arguments that are references would put the caller's objects into local memory, too.
template <class S, bool kMatches>
__device__ __noinline__ Peaks<S> wide_step(S s, StepView step, int first, int cells, typename S::Value* arena, const u64* peaks) {
  using Value = typename S::Value;
  Peaks<S> seen;
  const int domain = int(step[kDomain]), axes = int(step[kAxes]);
  const int tables = int(step[kTables]), tables_a = int(step[kTablesA]), tables_ab = tables_a + int(step[kTablesB]);
  const Division division(domain, cells);
  const int group = division.group;
  for (int round = 0; round < division.rounds; ++round) {
    const int cell = division.cell(round);
    const bool valid = cell < cells;
    int index[kMostTables] = {}, out = 0;
    for (u32 axis = axes, rest = first + (valid ? cell : 0); axis-- > 0;) {
      const u32 digit = last_digit(step, axis, rest);
      out += int(digit) * int(step.out_stride(axis));
      for (int t = 0; t < tables; ++t) index[t] += int(digit) * int(step.table(t).stride(axis));
    }
    typename S::Sum sum = s.start();
    for (int d = division.lane; valid && d < domain; d += group) {
      const auto value = [&](int t) {
        const TableView table = step.table(t);
        const Value loaded = arena[table.offset() + index[t] + d * table.domain_stride()];
        if constexpr (S::scaled) return loaded * scale_of<S>(table, peaks);
        return loaded;
      };
      if constexpr (kMatches) {
        if (step[kVariable] == kMatching) {
          Value values[kMostTables];
          for (int t = 0; t < tables; ++t) values[t] = value(t);
          s.add(sum, matched(s, values, tables_a, tables));
          continue;
        }
      }
      Value a = s.one(), b = s.one();
#pragma unroll 4
      for (int t = 0; t < tables_a; ++t) a = s.combine(a, value(t));
#pragma unroll 4
      for (int t = tables_a; t < tables_ab; ++t) b = s.combine(b, value(t));
      a = s.combine(a, b);
#pragma unroll 4
      for (int t = tables_ab; t < tables; ++t) a = s.combine(a, value(t));
      s.add(sum, a);
    }
    for (int mask = group / 2; mask; mask /= 2) s.add(sum, exchange(sum, mask));
    if (valid && division.lane == 0) {
      const Value result = s.finish(sum);
      arena[step[kOut] + out] = result;
      if constexpr (S::scaled) seen.see(result);
    }
  }
  return seen;
}

// Makes a warp wait until some steps are done or the run has to stop.
__device__ __noinline__ void wait_for(const i64* steps, i64 count, const volatile i32* unfinished, const i32* stop) {
  for (i64 base = 0; base < count; base += 32) {
    const i64 at = base + threadIdx.x;
    const volatile i32* chunks = unfinished + (at < count ? steps[at] : steps[base]);
    while (any_lane(~0u, *chunks > 0)) {
      if (any_lane(~0u, stopped(stop))) return;
      sleep_nanoseconds(kNapNanoseconds);
    }
  }
  __threadfence();
}

// `entries`: the entries of the launch, of which blocks have taken `taken`. `pending`: for each step that blocks walk
// to, how many it waits for; then for each step how many of its chunks are not finished. kTree: each step has one chunk
// and one reader at most, and no entry waits. kMatches: some steps match moments. Both are template parameters because,
// in a chain of small steps, even code that is only jumped over costs time.
template <class S, bool kTree, bool kMatches>
__global__ void __launch_bounds__(kThreads, kTree ? 1 : kResident)
    forest(const i64* __restrict__ words, i64 links_at, i64 entries_at, i64 slots, i64 steps, i32* taken, i32* pending,
           typename S::Value* arena, u64* peaks, const i32* stop, typename S::Value parameter) {
  using Value = typename S::Value;
  constexpr int kWarps = kThreads / 32;
  __shared__ i64 records[2][kRecordWords];
  __shared__ Value highs[kWarps], lows[kWarps];
  __shared__ i64 shared_slot;
  __shared__ int shared_goes_on;
  const int thread = int(threadIdx.x);
  const i64* links = words + links_at;
  i32* unfinished = pending + steps;

  for (;;) {
    __syncthreads();
    if (thread == 0) shared_slot = stopped(stop) ? slots : atomicAdd(taken, 1);
    __syncthreads();
    if (shared_slot >= slots) return;
    const i64 item = words[entries_at + shared_slot];
    i64 number = item >> kChunkBits;
    const i64 chunk = item & ((i64(1) << kChunkBits) - 1);
    const i64* first_link = links + number * kLinkWords;
    i64 link[kWalkWords];
    for (int i = 0; i < kWalkWords; ++i) link[i] = first_link[i];
    int chunks = kTree ? 1 : int(first_link[kChunks]);
    const int chunk_cells = int(first_link[kChunkCells]);
    const i64 start = first_link[kStart], length = first_link[kLength];
    for (int i = thread; i < length; i += kThreads) records[0][i] = words[start + i];
    if (!kTree && thread < 32) wait_for(words + first_link[kWaitsAt], first_link[kWaits], unfinished, stop);
    __syncthreads();

    for (int buffer = 0;; buffer ^= 1) {
      const StepView step{records[buffer]};
      const S s = semiring_of<S>(parameter, step);
      const i64 next = link[kNext], next_start = link[kNextStart], next_words = link[kNextWords];
      const bool is_shared = link[kNextChildren] > 1;
      const int first = !kTree && chunks > 1 ? int(chunk) * chunk_cells : 0;
      const int cells = !kTree && chunks > 1 ? min(chunk_cells, int(step.cells()) - first) : int(step.cells());
      i64 fetched[2] = {};
      if (next >= 0) {
        for (int i = 0; i < 2; ++i)
          if (i * kThreads + thread < next_words) fetched[i] = words[next_start + i * kThreads + thread];
        for (int i = 0; i < kWalkWords; ++i) link[i] = links[next * kLinkWords + i];
      }
      Peaks<S> seen;
      if (step[kTables] <= 2) {
        small_step<S, 2, kMatches>(s, step, first, cells, arena, peaks, seen);
      } else if (step[kTables] == 3) {
        small_step<S, 3, kMatches>(s, step, first, cells, arena, peaks, seen);
      } else if (step[kTables] == 4) {
        small_step<S, 4, kMatches>(s, step, first, cells, arena, peaks, seen);
      } else {
        seen = wide_step<S, kMatches>(s, step, first, cells, arena, peaks);
      }
      for (int i = 0; i < 2; ++i) records[buffer ^ 1][i * kThreads + thread] = fetched[i];
      if constexpr (S::scaled) {
        seen.reduce_warp();
        if (thread % 32 == 0) {
          highs[thread / 32] = seen.high;
          lows[thread / 32] = seen.low;
        }
      }
      __syncthreads();
      const bool is_one = kTree || chunks == 1;
      if ((S::scaled || !is_one || is_shared || next == kAwaited) && thread == 0) {
        if constexpr (S::scaled) {
          for (int warp = 1; warp < kWarps; ++warp) {
            seen.high = highs[warp] > seen.high ? highs[warp] : seen.high;
            seen.low = lows[warp] < seen.low ? lows[warp] : seen.low;
          }
          // Atomic operations on one address run one after another, so a block combines the values of its warps before it
          // performs one operation for each end of the range.
          is_one ? seen.write(peaks + 2 * number) : seen.add_to(peaks + 2 * number);
        }
        bool goes_on = next >= 0;
        if (!is_one || is_shared || next == kAwaited) __threadfence();
        if (!kTree && (next == kAwaited || (next >= 0 && !is_one))) goes_on = atomicSub(unfinished + number, 1) == 1 && goes_on;
        if (goes_on && is_shared) goes_on = atomicSub(pending + next, 1) == 1;
        if (!is_one || is_shared) __threadfence();
        shared_goes_on = goes_on;
      }
      if (next < 0) break;
      if (S::scaled || !is_one || is_shared) {
        __syncthreads();
        if (!shared_goes_on) break;
      }
      number = next;
      if constexpr (!kTree) chunks = 1;
    }
  }
}

}  // namespace elimina
