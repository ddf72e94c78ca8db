// One large step without streamed tables in one launch: a matrix product in the semiring. A block takes one slow cell, a chunk
// of the fast cells and a range of the middle cells. For `slab` values of d it keeps lhs[d][middle] and rhs[d][fast] in shared
// memory; each thread owns kRows middle cells x kVectors vectors of fast cells in registers. Blocks are small, so that several
// share a multiprocessor: while one of them fills shared memory or writes its output, the others compute.
#include "tile_parts.cuh"

namespace elimina {

template <class P, int kVectors>
constexpr int kLanesOf = kVectors * 16 / int(sizeof(typename P::Lane));

// The part of shared memory that a thread fills: words of `per` cells each, for every groups-th value of d.
struct Share {
  int words, threads, groups, group, first_word;
  __device__ __forceinline__ Share(int count, int per)
      : words((count + per - 1) / per), threads(int(blockDim.x)), groups(words < threads ? threads / words : 1),
        group(words < threads ? int(threadIdx.x) / words : 0),
        first_word(group < groups ? int(threadIdx.x) - group * words : words) {}
};

// Writes the cells of a word to successive slots.
template <class P, class Word, class Slot, int kLanes>
__device__ __forceinline__ void store_slots(Slot* slot, const typename P::Lane (&lanes)[kLanes]) {
  if constexpr (same<Slot, typename P::Cell>) {
    store_words<Word>(slot, lanes);
  } else {
    constexpr int kPer = kLanes * P::width;
    Slot slots[kPer];
#pragma unroll
    for (int j = 0; j < kPer; ++j) slots[j] = P::spread(lanes[j / P::width], j % P::width);
    store_words<Word>(slot, slots);
  }
}

// Puts kNumber words of the tables' product into slots. The words of all tables are loaded before the first one is used.
template <int kNumber, class P, class Word, class Slot, int kTables>
__device__ __forceinline__ void fill_slots(const typename P::Cell* (&from)[kTables], const i64 (&hop)[kTables], Slot*& slot,
                                     int slot_hop, const typename P::Semiring::Value* scales, P policy) {
  using Lane = typename P::Lane;
  constexpr int kLanes = int(sizeof(Word) / sizeof(Lane));
  Word words[kNumber][kTables];
#pragma unroll
  for (int u = 0; u < kNumber; ++u) {
#pragma unroll
    for (int t = 0; t < kTables; ++t) {
      words[u][t] = __ldg(reinterpret_cast<const Word*>(from[t]));
      from[t] += hop[t];
    }
  }
#pragma unroll
  for (int u = 0; u < kNumber; ++u, slot += slot_hop) {
    Lane values[kLanes];
#pragma unroll
    for (int t = 0; t < kTables; ++t) {
      Lane lanes[kLanes];
      memcpy(lanes, &words[u][t], sizeof(Word));
#pragma unroll
      for (int j = 0; j < kLanes; ++j) {
        if constexpr (P::Semiring::scaled) lanes[j] *= scales[t];
        values[j] = t == 0 ? lanes[j] : policy.combine(values[j], lanes[j]);
      }
    }
    store_slots<P, Word>(slot, values);
  }
}

// slots[d - d_first][i] = product of kTables tables from `first` on, each a matrix [d][cell] of consecutive cells, at
// cells from `cell_first` on. Reads whole words, even past the last cell. It has few instructions, because these limit
// the speed with small tables.
template <class P, class Slot, class Word, int kTables>
__device__ __forceinline__ void fill_few(int slots_at, int pitch, int count, i64 cell_first, int first, i64 d_first, int depth,
                                         const typename P::Cell* arena, Map map, P policy) {
  using Cell = typename P::Cell;
  constexpr int kPer = int(sizeof(Word) / sizeof(Cell));
  const StepView step{shared};
  const Share share(count, kPer);
  const auto* scales = at<typename P::Semiring::Value>(map.scales) + first;
#pragma unroll 1
  for (int word = share.first_word; word < share.words; word += share.threads) {
    const Cell* from[kTables];
    i64 hop[kTables];
#pragma unroll
    for (int t = 0; t < kTables; ++t) {
      const i64 stride = step.table(first + t).domain_stride();
      from[t] = arena + at<i64>(map.bases)[first + t] + (d_first + share.group) * stride + cell_first + word * kPer;
      hop[t] = share.groups * stride;
    }
    Slot* slot = at<Slot>(slots_at) + share.group * pitch + word * kPer;
    const int slot_hop = share.groups * pitch;
    int remaining = (depth - share.group + share.groups - 1) / share.groups;
#pragma unroll 1
    for (; remaining >= 4; remaining -= 4) fill_slots<4, P, Word>(from, hop, slot, slot_hop, scales, policy);
    if (remaining & 2) fill_slots<2, P, Word>(from, hop, slot, slot_hop, scales, policy);
    if (remaining & 1) fill_slots<1, P, Word>(from, hop, slot, slot_hop, scales, policy);
  }
}

// Like fill_few, for the tables [first, last), any number of them. A table in the mask `constant` lacks the axes of the
// cells, so it has the same value in all of them.
template <class P, class Slot, class Word, int kInFlight>
__device__ __forceinline__ void fill_any(int slots_at, int pitch, int count, i64 cell_first, int first, int last, u32 constant,
                                         i64 d_first, int depth, const typename P::Cell* arena, Map map, P policy) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  constexpr int kPer = int(sizeof(Word) / sizeof(Cell)), kLanes = int(sizeof(Word) / sizeof(Lane));
  const StepView step{shared};
  const Share share(count, kPer);
  const int groups = share.groups;
  // The loads of kInFlight values of d, `groups` apart, are in flight together.
  const auto load = [&](Lane(&lanes)[kInFlight][kLanes], int number, int word, int d) {
    const i64 stride = step.table(number).domain_stride();
    const Cell* from = arena + at<i64>(map.bases)[number] + (d_first + d) * stride;
    const i64 hop = groups * stride;
    if (constant >> number & 1) {
#pragma unroll
      for (int u = 0; u < kInFlight; ++u, from += hop)
        if (d + u * groups < depth) lanes[u][0] = P::splat(__ldg(from));
#pragma unroll
      for (int u = 0; u < kInFlight; ++u)
#pragma unroll
        for (int j = 1; j < kLanes; ++j) lanes[u][j] = lanes[u][0];
    } else {
      from += cell_first + word * kPer;
#pragma unroll
      for (int u = 0; u < kInFlight; ++u, from += hop) {
        if (d + u * groups < depth) {
          const Word loaded = __ldg(reinterpret_cast<const Word*>(from));
          memcpy(lanes[u], &loaded, sizeof(Word));
        }
      }
    }
    if constexpr (P::Semiring::scaled) {
#pragma unroll
      for (int u = 0; u < kInFlight; ++u)
#pragma unroll
        for (int j = 0; j < kLanes; ++j) lanes[u][j] *= at<typename P::Semiring::Value>(map.scales)[number];
    }
  };
#pragma unroll 1
  for (int word = share.first_word; word < share.words; word += share.threads) {
#pragma unroll 1
    for (int d = share.group; d < depth; d += kInFlight * groups) {
      Lane values[kInFlight][kLanes];
      if (first < last) {
        load(values, first, word, d);
      } else {
#pragma unroll
        for (int u = 0; u < kInFlight; ++u)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) values[u][j] = P::splat(policy.one());
      }
#pragma unroll 1
      for (int number = first + 1; number < last; ++number) {
        Lane next[kInFlight][kLanes];
        load(next, number, word, d);
#pragma unroll
        for (int u = 0; u < kInFlight; ++u)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) values[u][j] = policy.combine(values[u][j], next[u][j]);
      }
      Slot* slot = at<Slot>(slots_at) + d * pitch + word * kPer;
#pragma unroll
      for (int u = 0; u < kInFlight; ++u, slot += groups * pitch) {
        if (d + u * groups >= depth) continue;
        store_slots<P, Word>(slot, values[u]);
      }
    }
  }
}

template <class P, class Slot, class Word>
__device__ __forceinline__ void fill(int slots_at, int pitch, int count, i64 cell_first, int first, int last, u32 constant,
                                     i64 d_first, int depth, const typename P::Cell* arena, Map map, P policy) {
  const bool few = !(constant >> first & ((1u << (last - first)) - 1));
  if (few && last == first + 1) {
    fill_few<P, Slot, Word, 1>(slots_at, pitch, count, cell_first, first, d_first, depth, arena, map, policy);
  } else if (few && last == first + 2) {
    fill_few<P, Slot, Word, 2>(slots_at, pitch, count, cell_first, first, d_first, depth, arena, map, policy);
  } else {
    fill_any<P, Slot, Word, 4>(slots_at, pitch, count, cell_first, first, last, constant, d_first, depth, arena, map, policy);
  }
}

// Type of the words of `bytes` bytes in which tables are read.
template <int bytes>
struct WordOf {
  using Type = int4;
};
template <>
struct WordOf<8> {
  using Type = int2;
};
template <>
struct WordOf<4> {
  using Type = int;
};

// kWord: bytes of the words that all tables may be read in; 0: cells are gathered one by one. kWhole: all values of d
// are in shared memory at once; then rhs stays there for all middle cells, and lhs has the middle cells of several
// passes. A block takes `chunk` fast cells and `mids` middle cells; `columns` of its threads are next to each other along
// the fast axes. Shared memory holds `batch` middle cells and `slab` values of d at a time. `vector`: bytes of the words
// in which the output may be written.
template <class P, int kWord, bool kWhole, int kRows, int kVectors, int kBlocks>
__global__ void __launch_bounds__(kProductThreads, kBlocks)
    product(const i64* __restrict__ record, int record_words, int number, int tables, u32 constant, int chunks, int chunk,
            int splits, int mids, int columns, int batch, int slab, int vector, typename P::Cell* arena, u64* peaks,
            const i32* stop, typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  constexpr int kLanes = kLanesOf<P, kVectors>, kPer = 16 / int(sizeof(Cell)), kVectorLanes = kLanes / kVectors;
  // Float loops are unrolled further: additions and minima of floats need every cycle of the scheduler, so the loop's own
  // instructions cost time. Operations on other types wait for one arithmetic unit, which leaves cycles for them.
  constexpr int kUnroll = same<Lane, float> ? 4 : 2;
  const Map map = map_of<P>(record_words, tables, 0, batch, slab, chunk, 0);

  u64 block = blockIdx.x;
  const i64 lo_first = i64(block % u32(chunks)) * chunk;
  block /= u32(chunks);
  const int split = int(block % u32(splits));
  if (!prepare<P>(record, record_words, block / u32(splits), peaks, stop, map.bases, map.scales)) return;
  const StepView step{shared};
  const int cells = int(min(i64(chunk), step[kLoCells] - lo_first));
  const i64 mid_first = i64(split) * mids, mid_last = min(mid_first + mids, step[kMidCells]);
  const int domain = int(step[kDomain]);
  const P policy(parameter, step);
  const int column = int(threadIdx.x) % columns, row = int(threadIdx.x) / columns;
  const int lo = column * kPer, hop = columns * kPer;  // the vectors of a thread are `hop` cells apart
  const bool busy = row < kProductThreads / columns && lo < cells;
  Peaks<typename P::Semiring> seen;

  const auto fill_a = [&](i64 first, int count, int d, int depth) {
    const int last = int(step[kTablesA]);
    if constexpr (kWord > 0) {
      using Word = typename WordOf<kWord>::Type;
      fill<P, Lane, Word>(map.a, batch, count, first, 0, last, constant, d, depth, arena, map, policy);
    } else {
      build<P, Lane>(map.a, batch, count, first, int(step[kOuterAxes]), int(step.lo_axis()), 0, last, d, depth, arena, map, policy);
    }
  };
  const auto fill_b = [&](int d, int depth) {
    const int first = int(step[kTablesA]);
    if constexpr (kWord > 0) {
      using Word = typename WordOf<kWord>::Type;
      fill<P, Cell, Word>(map.b, chunk, cells, lo_first, first, tables, constant, d, depth, arena, map, policy);
    } else {
      build<P, Cell>(map.b, chunk, cells, lo_first, int(step.lo_axis()), int(step[kAxes]), first, tables, d, depth, arena, map, policy);
    }
  };
  const auto begin = [&](Sum(&sums)[kRows][kLanes]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kLanes; ++j) sums[i][j] = policy.start();
  };

  // Adds the `depth` values of d in shared memory to the sums of this thread's cells.
  const auto accumulate = [&](Sum(&sums)[kRows][kLanes], int top, int depth) {
    const Lane* a = at<Lane>(map.a) + top;
    const Cell* b = at<Cell>(map.b) + lo;
#pragma unroll kUnroll
    for (int d = 0; d < depth; ++d, a += batch, b += chunk) {
      Lane left[kRows], right[kLanes];
      copy_words(left, a);
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        Lane lanes[kVectorLanes];
        copy_words(lanes, b + v * hop);
#pragma unroll
        for (int j = 0; j < kVectorLanes; ++j) right[v * kVectorLanes + j] = lanes[j];
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i)
#pragma unroll
        for (int j = 0; j < kLanes; ++j) policy.fold(sums[i][j], left[i], right[j]);
    }
  };

  const auto store = [&](Sum(&sums)[kRows][kLanes], int top, int count) {
    const bool full = vector == 16 && lo + (kVectors - 1) * hop + kPer <= cells;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (top + i >= count) continue;
      Cell* out = arena + at<i64>(map.mids)[top + i] + lo_first + lo;
#pragma unroll
      for (int v = 0; v < kVectors; ++v, out += hop) {
        const int remaining = cells - lo - v * hop;
        Lane results[kVectorLanes];
#pragma unroll
        for (int j = 0; j < kVectorLanes; ++j) results[j] = policy.finish(sums[i][v * kVectorLanes + j]);
        if (full) {
          store_words<int4>(out, results);
        } else {
          store_cells<P>(out, results, remaining, vector);
        }
        if constexpr (P::Semiring::scaled) {
#pragma unroll
          for (int j = 0; j < kVectorLanes; ++j)
            if (j < remaining) seen.see(results[j]);
        }
      }
    }
  };

  if constexpr (kWhole) {
    fill_b(0, domain);
    for (i64 first = mid_first; first < mid_last; first += batch) {
      const int count = int(min(i64(batch), mid_last - first));
      if (first > mid_first) __syncthreads();
      locate(first, count, batch, 0, map.bases, map.mids);
      fill_a(first, count, 0, domain);
      __syncthreads();
      for (int top = row * kRows; busy && top < count; top += kProductThreads / columns * kRows) {
        Sum sums[kRows][kLanes];
        begin(sums);
        accumulate(sums, top, domain);
        store(sums, top, count);
      }
    }
  } else {
    const int top = row * kRows;
    for (i64 first = mid_first; first < mid_last; first += batch) {
      const int count = int(min(i64(batch), mid_last - first));
      __syncthreads();
      locate(first, count, batch, 0, map.bases, map.mids);
      Sum sums[kRows][kLanes];
      begin(sums);
      for (int d = 0; d < domain; d += slab) {
        const int depth = min(slab, domain - d);
        if (d > 0) __syncthreads();
        fill_a(first, count, d, depth);
        fill_b(d, depth);
        __syncthreads();
        if (busy && top < count) accumulate(sums, top, depth);
      }
      if (busy && top < count) store(sums, top, count);
    }
  }
  if constexpr (P::Semiring::scaled) seen.publish(peaks + 2 * number);
}

}  // namespace elimina
