// Sparse tables on the device: see elimina/rows.hpp for a row, and core/exec/sparse/join.hpp for a join by pairs of runs.
#include <elimina/rows.hpp>

#include "common.cuh"

namespace elimina {

using namespace sparse;

__device__ __forceinline__ i64 thread_number() { return i64(blockIdx.x) * kThreads + threadIdx.x; }

template <int W>
struct Mask {
  Key<W> key;
  __device__ explicit Mask(const u64* words) {
    for (int w = 0; w < W; ++w) key.word[w] = words[w];
  }
};

template <int A, int B>
__global__ void __launch_bounds__(kThreads) rows_move(const Key<A>* keys, i64 rows, const i64* segments, i64 count, Key<B>* to) {
  const i64 i = thread_number();
  if (i < rows) to[i] = move_key<A, B>(keys[i], segments, count);
}

// Sets *flag to 1 if a key is less than the one before it.
template <int W>
__global__ void __launch_bounds__(kThreads) rows_unsorted(const Key<W>* keys, i64 rows, i32* flag) {
  const i64 i = thread_number() + 1;
  if (i < rows && less(keys[i], keys[i - 1], all_but<W>(0))) *flag = 1;
}

template <class V, int W>
__global__ void __launch_bounds__(kThreads)
    rows_gather(const Key<W>* keys, const V* values, const i64* order, i64 rows, Key<W>* to_keys, V* to_values) {
  const i64 i = thread_number();
  if (i >= rows) return;
  const i64 from = order[i];
  to_keys[i] = keys[from];
  to_values[i] = values[from];
}

// Marks the first row of each run by 1, the others by 0.
template <int W>
__global__ void __launch_bounds__(kThreads) rows_heads(const Key<W>* keys, i64 rows, u64 low, i64* heads) {
  const i64 i = thread_number();
  if (i < rows) heads[i] = i == 0 || !agree(keys[i], keys[i - 1], all_but<W>(low));
}

// Writes the start of each run, and the end of the last one. `runs`: running sums of the marks.
__global__ void __launch_bounds__(kThreads) rows_starts(const i64* runs, i64 rows, i64* starts) {
  const i64 i = thread_number();
  if (i >= rows) return;
  if (i == 0 || runs[i] != runs[i - 1]) starts[runs[i] - 1] = i;
  if (i == rows - 1) starts[runs[i]] = rows;
}

// The runs of a sorted table; without starts, each row is a run. The number of runs stays on the device.
template <int W>
struct Runs {
  const Key<W>* keys;
  const i64* starts;
  const i64* last;  // the number of runs
  i64 rows;
  __device__ i64 count() const { return starts ? *last : rows; }
  __device__ i64 start(i64 run) const { return starts ? starts[run] : run; }
  __device__ const Key<W>& key(i64 run) const { return keys[start(run)]; }
};

// Returns the first run of [at, end) whose key is at least `key` (`past`: greater than `key`) in the bits of `group`;
// `end` if there is none.
template <int W>
__device__ i64 find_run(const Runs<W>& runs, i64 at, i64 end, const Key<W>& key, const Key<W>& group, bool past) {
  while (at < end) {
    const i64 middle = at + (end - at) / 2;
    if (past ? !less(key, runs.key(middle), group) : less(runs.key(middle), key, group)) at = middle + 1;
    else end = middle;
  }
  return at;
}

// Finds the first right run in each left run's group (unset if there is none), and the number of right runs in the
// group.
template <int W>
__global__ void __launch_bounds__(kThreads)
    rows_match(const Key<W>* left, const i64* left_starts, const i64* left_last, i64 left_rows, const Key<W>* right,
               const i64* right_starts, const i64* right_last, i64 right_rows, const u64* group_words, i64* first, i64* counts) {
  const i64 run = thread_number();
  if (run >= left_rows) return;
  const Runs<W> l{left, left_starts, left_last, left_rows}, r{right, right_starts, right_last, right_rows};
  counts[run] = 0;
  if (run >= l.count()) return;
  const Key<W> group = Mask<W>(group_words).key, key = l.key(run);
  const i64 end = r.count(), at = find_run(r, 0, end, key, group, false);
  if (at == end || !agree(r.key(at), key, group)) return;
  // Galloping before bisection, because most groups are small.
  i64 step = 1;
  while (at + step < end && agree(r.key(at + step), key, group)) step *= 2;
  first[run] = at;
  counts[run] = find_run(r, at + step / 2, at + step < end ? at + step : end, key, group, true) - at;
}

// Returns the sum of `count` over the threads that come before this one in the block; `all`: the sum over the block.
__device__ i64 block_scan(i64 count, i64& all) {
  __shared__ i64 sums[kThreads / 32];
  const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  i64 running = count;
  for (int step = 1; step < 32; step *= 2) {
    const i64 other = lower_lane(running, u32(step));
    if (lane >= step) running += other;
  }
  __syncthreads();
  if (lane == 31) sums[warp] = running;
  __syncthreads();
  i64 before = 0;
  all = 0;
  for (int w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += sums[w];
    all += sums[w];
  }
  return before + running - count;
}

// First entry of [at, end) of the ascending sums that is above `pair`; `end` if there is none.
__device__ __forceinline__ i64 find_sum(const i64* sums, i64 at, i64 end, i64 pair) {
  while (at < end) {
    const i64 middle = at + (end - at) / 2;
    if (sums[middle] <= pair) at = middle + 1;
    else end = middle;
  }
  return at;
}

// Work of a thread on a pair of runs: counts or writes the rows of their join. The rows of a run differ only in the low
// field of their keys. If this field is eliminated or missing, the join has at most one row.
template <class R, int W, bool kMany>
struct Pairing {
  using Value = typename R::Value;
  Stage<R, W> stage;
  u64 low;
  Side<R, W> left, right;
  i64 i, i_end, j, j_end;

  template <class Visit>
  __device__ void each(Visit&& visit) const {
    meet(stage, low, left, i, i_end, right, j, j_end, visit);
  }
  __device__ i64 count() const {
    i64 rows = 0;
    if constexpr (kMany) each([&](const Key<W>&, Value) { ++rows; });
    else rows = marginal().any;
    return rows;
  }
  __device__ Marginal<R> marginal() const {
    Marginal<R> result(stage.ring);
    each([&](const Key<W>&, Value value) { result.add(stage.ring, value); });
    return result;
  }
};

// Each block has kThreads * kRounds pairs of runs, in the order of the joint table. First their rows are counted (kFill false), then,
// with the running sums of the counts, written.
template <class R, int W, bool kMany, bool kFill>
__global__ void __launch_bounds__(kThreads)
    rows_join(const Key<W>* left, const typename R::Value* left_values, const i64* left_starts, i64 left_rows, const Key<W>* right,
              const typename R::Value* right_values, const i64* right_starts, const i64* first, const i64* sums, i64 pairs, u64 low,
              const i64* stage_words, typename R::Value budget, typename R::Value parameter, i64* counts, Key<W>* keys,
              typename R::Value* values) {
  using Value = typename R::Value;
  constexpr int kRounds = 8;
  const i64 begin = i64(blockIdx.x) * kThreads * kRounds;
  const i64 end = begin + kThreads * kRounds < pairs ? begin + kThreads * kRounds : pairs;
  const i64 first_run = find_sum(sums, 0, left_rows, begin), last_run = find_sum(sums, first_run, left_rows, end - 1);
  const R ring = semiring_of<R>(parameter);
  i64 rows = 0, at = kFill && blockIdx.x > 0 ? counts[blockIdx.x - 1] : 0, all = 0;
  for (int round = 0; round < kRounds; ++round) {
    const i64 pair = begin + round * kThreads + threadIdx.x;
    if (begin + round * kThreads >= end) break;
    Pairing<R, W, kMany> work{{ring, stage_words, budget}, low, {left, left_values}, {right, right_values}, 0, 0, 0, 0};
    if (pair < end) {
      const i64 run = find_sum(sums, first_run, last_run, pair);
      const i64 other = first[run] + pair - (run ? sums[run - 1] : 0);
      work.i = left_starts ? left_starts[run] : run;
      work.i_end = left_starts ? left_starts[run + 1] : run + 1;
      work.j = right_starts ? right_starts[other] : other;
      work.j_end = right_starts ? right_starts[other + 1] : other + 1;
    }
    if constexpr (!kFill) {
      rows += work.count();
    } else if constexpr (kMany) {
      i64 to = at + block_scan(work.count(), all);
      work.each([&](const Key<W>& key, Value value) {
        keys[to] = key;
        values[to++] = value;
      });
      at += all;
    } else {
      const Marginal<R> marginal = work.marginal();
      const i64 to = at + block_scan(marginal.any, all);
      if (marginal.any) {
        Key<W> key = left[work.i] | right[work.j];
        key.word[W - 1] &= ~low;
        keys[to] = key;
        values[to] = ring.finish(marginal.sum);
      }
      at += all;
    }
  }
  if constexpr (!kFill) {
    block_scan(rows, all);
    if (threadIdx.x == 0) counts[blockIdx.x] = all;
  }
}

// One thread for each run: runs are no longer than a domain.
template <class R, int W>
__global__ void __launch_bounds__(kThreads)
    rows_project(const Key<W>* keys, const typename R::Value* values, const i64* starts, i64 runs, u64 low,
                 typename R::Value parameter, Key<W>* to_keys, typename R::Value* to_values) {
  const i64 run = thread_number();
  if (run >= runs) return;
  const R ring = semiring_of<R>(parameter);
  Marginal<R> marginal(ring);
  for (i64 i = starts[run]; i < starts[run + 1]; ++i) marginal.add(ring, values[i]);
  Key<W> key = keys[starts[run]];
  key.word[W - 1] &= ~low;
  to_keys[run] = key;
  to_values[run] = ring.finish(marginal.sum);
}

// Keeps the marked rows, at which the running sum of the marks grows.
template <class V, int W>
__global__ void __launch_bounds__(kThreads)
    rows_keep(const Key<W>* keys, const V* values, const i64* sums, i64 rows, Key<W>* to_keys, V* to_values) {
  const i64 i = thread_number();
  if (i >= rows || sums[i] == (i ? sums[i - 1] : 0)) return;
  to_keys[sums[i] - 1] = keys[i];
  to_values[sums[i] - 1] = values[i];
}

// A cell by its number in key order: its position in the table, and its key.
template <int W>
__device__ i64 cell_at(i64 number, const i64* axes, const i64* sizes, int count, Key<W>& key) {
  i64 cell = 0;
  for (int axis = count - 1; axis >= 0; --axis) {
    const i64* term = axes + axis * kTermWords;
    const i64 digit = number % sizes[axis];
    number /= sizes[axis];
    cell += digit * term[kTermStride];
    key.word[term[kTermWord]] |= u64(digit) << term[kTermShift];
  }
  return cell;
}

template <class R>
__global__ void __launch_bounds__(kThreads)
    rows_feasible(const typename R::Value* cells, i64 all, const i64* axes, const i64* sizes, i32 count,
                  typename R::Value parameter, i64* flags) {
  const i64 number = thread_number();
  Key<4> key{};
  if (number < all) flags[number] = feasible(semiring_of<R>(parameter), cells[cell_at(number, axes, sizes, count, key)]);
}

template <class V, int W>
__global__ void __launch_bounds__(kThreads)
    rows_from_dense(const V* cells, i64 all, const i64* axes, const i64* sizes, i32 count, const i64* sums, Key<W>* keys, V* values) {
  const i64 number = thread_number();
  if (number >= all || sums[number] == (number ? sums[number - 1] : 0)) return;
  Key<W> key{};
  values[sums[number] - 1] = cells[cell_at(number, axes, sizes, count, key)];
  keys[sums[number] - 1] = key;
}

template <class V, int W>
__global__ void __launch_bounds__(kThreads)
    rows_to_dense(const Key<W>* keys, const V* values, i64 rows, const i64* terms, i64 count, V* cells) {
  const i64 i = thread_number();
  if (i < rows) cells[cell_of(keys[i], terms, count)] = values[i];
}

}  // namespace elimina
