// One large step without streamed tables in one launch: a matrix product in the semiring. A block takes one outer cell, a chunk of
// the lo cells and a range of the mid cells. For `slab` values of d it keeps A[d][mid] and B[d][lo] in shared memory; each thread
// owns kRows mid cells x kVectors vectors of lo cells in registers. Blocks are small, so that several share a multiprocessor: while
// one of them fills shared memory or writes its output, the others compute.
#include "tile_parts.cuh"

namespace elimina {

template <class P, int kVectors>
constexpr int kLanesOf = kVectors * 16 / int(sizeof(typename P::Lane));

// slots[d - d_first][i] = product of the tables [first, last), each a matrix [d][cell] whose cells follow each other (or are all the
// same: those in `constant`), at cells from `cell_first` on. Reads whole words, past the last cell too.
template <class P, class Slot, class Word>
__device__ __forceinline__ void fill(int slots_at, int pitch, int count, i64 cell_first, int first, int last, u32 constant,
                                     i64 d_first, int depth, const typename P::Cell* arena, Map map, P policy) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  constexpr int kInFlight = 4, kPer = int(sizeof(Word) / sizeof(Cell)), kLanes = int(sizeof(Word) / sizeof(Lane));
  const StepView step{shared};
  const int words = (count + kPer - 1) / kPer, groups = words < int(blockDim.x) ? int(blockDim.x) / words : 1;
  const int group = int(threadIdx.x) / words;
  if (words < int(blockDim.x) && group >= groups) return;
#pragma unroll 1
  for (int word = words < int(blockDim.x) ? int(threadIdx.x) - group * words : int(threadIdx.x); word < words;
       word += int(blockDim.x)) {
#pragma unroll 1
    for (int d = words < int(blockDim.x) ? group : 0; d < depth; d += kInFlight * groups) {
      Lane values[kInFlight][kLanes];
#pragma unroll
      for (int u = 0; u < kInFlight; ++u)
#pragma unroll
        for (int j = 0; j < kLanes; ++j) values[u][j] = P::splat(policy.one());
#pragma unroll 1
      for (int number = first; number < last; ++number) {
        const i64 stride = step.table(number).domain_stride();
        const bool same_cell = constant >> number & 1;
        const Cell* from =
            arena + at<i64>(map.bases)[number] + (d_first + d) * stride + (same_cell ? 0 : cell_first + word * kPer);
        Lane next[kInFlight][kLanes];
        if (same_cell) {
#pragma unroll
          for (int u = 0; u < kInFlight; ++u)
            if (d + u * groups < depth) next[u][0] = P::splat(__ldg(from + u * groups * stride));
#pragma unroll
          for (int u = 0; u < kInFlight; ++u)
#pragma unroll
            for (int j = 1; j < kLanes; ++j) next[u][j] = next[u][0];
        } else {
#pragma unroll
          for (int u = 0; u < kInFlight; ++u)
            if (d + u * groups < depth) {
              const Word loaded = __ldg(reinterpret_cast<const Word*>(from + u * groups * stride));
              memcpy(next[u], &loaded, sizeof(Word));
            }
        }
#pragma unroll
        for (int u = 0; u < kInFlight; ++u)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) {
            if constexpr (P::Semiring::scaled) next[u][j] *= at<typename P::Semiring::Value>(map.scales)[number];
            values[u][j] = number == first ? next[u][j] : policy.combine(values[u][j], next[u][j]);
          }
      }
#pragma unroll
      for (int u = 0; u < kInFlight; ++u) {
        if (d + u * groups >= depth) continue;
        Slot* slot = at<Slot>(slots_at) + (d + u * groups) * pitch + word * kPer;
        if constexpr (same<Slot, Cell>) {
          store_words<Word>(slot, values[u]);
        } else {
          Slot slots[kPer];
#pragma unroll
          for (int j = 0; j < kPer; ++j) slots[j] = P::spread(values[u][j / P::width], j % P::width);
          store_words<Word>(slot, slots);
        }
      }
    }
  }
}

// The words of `bytes` bytes that tables are read in.
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

// kWord: bytes of the words that all tables may be read in; 0: cells are gathered one by one.
// `chunk` lo cells and `mids` mid cells a block; `columns` threads beside each other along lo; `batch` mid cells and `slab` values
// of d at a time; `vector`: bytes of the words that the output may be written in.
template <class P, int kWord, int kRows, int kVectors, int kBlocks>
__global__ void __launch_bounds__(kProductThreads, kBlocks)
    product(const i64* __restrict__ record, int record_words, int number, int tables, u32 constant, int chunks, int chunk,
            int splits, int mids, int columns, int batch, int slab, int vector, typename P::Cell* arena, u64* peaks,
            const i32* stop, typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  constexpr int kLanes = kLanesOf<P, kVectors>, kPer = 16 / int(sizeof(Cell)), kVectorLanes = kLanes / kVectors;
  if (stopped(stop)) return;
  const Map map = map_of<P>(record_words, tables, 0, batch, slab, chunk, 0);

  u64 block = blockIdx.x;
  const i64 lo_first = i64(block % u32(chunks)) * chunk;
  block /= u32(chunks);
  const int split = int(block % u32(splits));
  prepare<P>(record, record_words, block / u32(splits), peaks, map.bases, map.scales);
  __syncthreads();
  const StepView step{shared};
  const int cells = int(min(i64(chunk), step[kLoCells] - lo_first));
  const i64 mid_first = i64(split) * mids, mid_last = min(mid_first + mids, step[kMidCells]);
  const int domain = int(step[kDomain]);
  const int outer_axes = int(step[kOuterAxes]), lo_axis = int(step.lo_axis()), axes = int(step[kAxes]);
  const int tables_a = int(step[kTablesA]);
  const P policy(parameter);
  const int column = int(threadIdx.x) % columns, top = int(threadIdx.x) / columns * kRows;
  const int lo = column * kPer;  // the other vectors are `columns` vectors further on each
  Peaks<typename P::Semiring> seen;

  const auto prepare_slab = [&](i64 first, int count, int d, int depth, bool fresh) {
    if constexpr (kWord > 0) {
      using Word = typename WordOf<kWord>::Type;
      fill<P, Lane, Word>(map.a, batch, count, first, 0, tables_a, constant, d, depth, arena, map, policy);
      if (fresh) fill<P, Cell, Word>(map.b, chunk, cells, lo_first, tables_a, tables, constant, d, depth, arena, map, policy);
    } else {
      build<P, Lane>(map.a, batch, count, first, outer_axes, lo_axis, 0, tables_a, d, depth, arena, map, policy);
      if (fresh) {
        build<P, Cell>(map.b, chunk, cells, lo_first, lo_axis, axes, tables_a, tables, d, depth, arena, map, policy);
      }
    }
  };

  for (i64 first = mid_first; first < mid_last; first += batch) {
    const int count = int(min(i64(batch), mid_last - first));
    __syncthreads();
    locate(first, count, batch, 0, map.bases, map.mids);
    Sum sums[kRows][kLanes];
    for (int d = 0; d < domain; d += slab) {
      const int depth = min(slab, domain - d);
      if (d > 0) __syncthreads();
      prepare_slab(first, count, d, depth, slab < domain || first == mid_first);
      __syncthreads();
      if (d == 0) {
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) sums[i][j] = policy.start();
      }
      if (top >= count || lo >= cells) continue;
      const Lane* a = at<Lane>(map.a) + top;
      const Cell* b = at<Cell>(map.b) + lo;
#pragma unroll 2
      for (int u = 0; u < depth; ++u, a += batch, b += chunk) {
        Lane left[kRows], right[kLanes];
        copy_words(left, a);
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
          Lane lanes[kVectorLanes];
          copy_words(lanes, b + v * columns * kPer);
#pragma unroll
          for (int j = 0; j < kVectorLanes; ++j) right[v * kVectorLanes + j] = lanes[j];
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) policy.fold(sums[i][j], left[i], right[j]);
      }
    }
    if (top >= count) continue;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (top + i >= count) continue;
      Cell* out = arena + at<i64>(map.mids)[top + i] + lo_first;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const int cell = lo + v * columns * kPer;
        if (cell >= cells) continue;
        Lane results[kVectorLanes];
#pragma unroll
        for (int j = 0; j < kVectorLanes; ++j) results[j] = policy.finish(sums[i][v * kVectorLanes + j]);
        store_cells<P>(out + cell, results, cells - cell, vector);
        if constexpr (P::Semiring::scaled) {
#pragma unroll
          for (int j = 0; j < kVectorLanes; ++j)
            if (cell + j < cells) seen.see(results[j]);
        }
      }
    }
  }
  if constexpr (P::Semiring::scaled) seen.publish(peaks + 2 * number);
}

}  // namespace elimina
