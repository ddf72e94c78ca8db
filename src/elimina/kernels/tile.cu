// One large step in one launch. A block takes one slow cell, a chunk of the fast cells and a range of the middle cells. It
// keeps rhs[d][fast] and, for a batch of middle cells, lhs[middle][d] in shared memory; each thread owns kRows middle cells x
// kLanes lanes of fast cells in registers and walks d, reading only the streamed tables (steps without them: product.cu). No
// division in the inner loops: offsets of fast cells are computed once a block, those of middle cells once a batch.
#include "tile_parts.cuh"

namespace elimina {

// Copies 16 of the 32 bytes of `low` and `high` to `lanes`, from byte `shift` on.
template <class Lanes>
__device__ __forceinline__ void realign(Lanes& lanes, int4 low, int4 high, u32 shift) {
  static_assert(sizeof(lanes) == 16);
  u32 words[8] = {u32(low.x), u32(low.y), u32(low.z), u32(low.w), u32(high.x), u32(high.y), u32(high.z), u32(high.w)};
#pragma unroll
  for (int i = 0; i < 6; ++i) words[i] = shift & 8 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) words[i] = shift & 4 ? words[i + 1] : words[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], 8 * (shift & 2));
  memcpy(lanes, words, 16);
}

// kLanes lanes from consecutive cells, or from cells `columns` apart.
template <class P, bool kDense, int kLanes>
__device__ __forceinline__ void load_shared(typename P::Lane (&lanes)[kLanes], const typename P::Cell* cells, int columns) {
  if constexpr (kDense) {
    copy_words(lanes, cells);
  } else {
#pragma unroll
    for (int j = 0; j < kLanes; ++j) lanes[j] = P::splat(cells[j * columns]);
  }
}

// kDense: consecutive cells along the fast axes are consecutive in every streamed table, too; kAligned: at 16-byte addresses.
// kWhole: all values of d are in shared memory at once, so each pass completes its sums.
// kOuters > 1: a block takes up to kOuters slow cells with equal values of the streamed tables, and reads each value
// once.
// A block takes `chunk` fast cells and `mids` middle cells; `columns` of its threads are next to each other along the fast
// axes. Shared memory holds `batch` middle cells and `slab` values of d at a time. `vector`: bytes of the words in which
// the output may be written. `sharing` successive slow cells have the same streamed values; a block takes `outers` of
// them.
template <class P, int kStreamed, bool kDense, bool kAligned, bool kWhole, int kRows, int kLanes, int kDepth, int kBlocks, int kOuters>
__global__ void __launch_bounds__(kThreads, kBlocks)
    tile(const i64* __restrict__ record, int record_words, int number, int tables, int some_streamed, int chunks, int chunk,
         int splits, int mids, int columns, int batch, int slab, int vector, int sharing, int outers, typename P::Cell* arena, u64* peaks,
         const i32* stop, typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  using Scale = typename P::Semiring::Value;
  constexpr bool kGeneric = kStreamed < 0;
  constexpr int kFixed = kGeneric ? 1 : kStreamed;
  constexpr int kCells = kLanes * P::width;
  constexpr bool kRing = kDense && kWhole && kStreamed > 0;
  static_assert(kStreamed != 0 && (kWhole || !kDense) && (kRing || kOuters == 1));
  const int streamed = kGeneric ? some_streamed : kStreamed;
  const int pitch = (chunk + kCells - 1) / kCells * kCells;
  if constexpr (kOuters == 1) outers = 1;
  const Map map = map_of<P>(record_words, tables, streamed, batch, slab, pitch, kGeneric ? streamed * pitch : 0, outers);

  // Blocks that read the same streamed values run one after another, so that the values stay in a cache.
  u64 block = blockIdx.x, shared_outer = 0;
  if constexpr (kOuters > 1) {
    const u32 groups = u32((sharing + outers - 1) / outers);
    shared_outer = block % groups * outers;
    block /= groups;
  }
  const int split = int(block % u32(splits));
  block /= u32(splits);
  const i64 lo_first = i64(block % u32(chunks)) * chunk;
  block /= u32(chunks);
  const int here = kOuters > 1 ? int(min(u64(outers), sharing - shared_outer)) : 1;
  const u64 first_outer = kOuters > 1 ? block * sharing + shared_outer : block;
  if (!prepare<P>(record, record_words, first_outer, peaks, stop, map.bases, map.scales, here)) return;
  const StepView step{shared};
  const int cells = int(min(i64(chunk), step[kLoCells] - lo_first));
  const i64 mid_first = i64(split) * mids, mid_last = min(mid_first + mids, step[kMidCells]);
  const int domain = int(step[kDomain]);
  const P policy(parameter, step);
  if constexpr (kGeneric) locate_lo<i32>(lo_first, cells, pitch, tables - streamed, tables, map.los);

  const int column = int(threadIdx.x) % columns, row = int(threadIdx.x) / columns, rows_block = kThreads / columns * kRows;
  const int lo = kDense ? column * kCells : column;  // within the chunk; without kDense the thread's cells are `columns` apart
  const bool busy = row < kThreads / columns && lo < cells;
  i32 lo_offset[kFixed][kDense ? 1 : kLanes];
  i64 stream_stride[kFixed];
  Scale stream_scale[kFixed];
  if constexpr (kStreamed > 0) {
#pragma unroll
    for (int k = 0; k < kFixed; ++k) {
      const TableView table = step.table(tables - streamed + k);
      stream_stride[k] = table.domain_stride();
      stream_scale[k] = at<Scale>(map.scales)[tables - streamed + k];
#pragma unroll
      for (int j = 0; j < (kDense ? 1 : kLanes); ++j) {
        lo_offset[k][j] = kDense ? i32(lo_first) + lo
                                 : i32(offset_of(step, lo_first + min(lo + j * columns, cells - 1), step.lo_axis(), step[kAxes],
                                                 [&](i64 axis) { return table.stride(axis); }));
      }
    }
  }
  Peaks<typename P::Semiring> seen;

  // Adds the products for one value of d to the kRows x kLanes sums of a slow cell. `values`: the streamed values, already
  // loaded.
  const auto add_rows = [&](Sum(&sums)[kRows][kLanes], const Lane(&values)[kFixed][kRows][kLanes], const Lane* a, const Cell* b) {
    Lane lanes[kLanes];
    load_shared<P, kDense, kLanes>(lanes, b, columns);
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
#pragma unroll
      for (int j = 0; j < kLanes; ++j) {
        Lane value = policy.combine(a[i], lanes[j]);
#pragma unroll
        for (int k = 0; k < kFixed; ++k) {
          Lane next = values[k][i][j];
          if constexpr (P::Semiring::scaled && !kRing) next *= stream_scale[k];
          if (k + 1 < kFixed) {
            value = policy.combine(value, next);
          } else {
            policy.fold(sums[i][j], value, next);
          }
        }
      }
    }
  };

  // Adds the values of d in shared memory, [d_first, d_first + depth), to the sums of this thread's cells.
  const auto accumulate = [&](Sum(&sums)[kRows][kLanes], int top, int count, i64 d_first, int depth) {
    const Lane* a = at<Lane>(map.a) + top;
    const Cell* b = at<Cell>(map.b) + lo;
    if constexpr (kStreamed > 0 && !kDense) {
      const Cell* streams[kFixed][kRows];
#pragma unroll
      for (int k = 0; k < kFixed; ++k)
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          streams[k][i] = arena + at<i64>(map.mids)[k * batch + min(top + i, count - 1)] + d_first * stream_stride[k];
      const int steps = (depth + kDepth - 1) / kDepth, stride = (depth + steps - 1) / steps;
      for (int d = 0; d < depth; d += stride) {
        Lane values[kDepth][kFixed][kRows][kLanes];
#pragma unroll
        for (int u = 0; u < kDepth; ++u)
#pragma unroll
          for (int k = 0; k < kFixed; ++k)
#pragma unroll
            for (int i = 0; i < kRows; ++i)
#pragma unroll
              for (int j = 0; j < kLanes; ++j)
                if (u < stride && d + u < depth && top + i < count)
                  values[u][k][i][j] = P::splat(__ldg(streams[k][i] + u * stream_stride[k] + lo_offset[k][j]));
#pragma unroll
        for (int u = 0; u < kDepth; ++u)
          if (u < stride && d + u < depth) add_rows(sums, values[u], a + (d + u) * batch, b + (d + u) * pitch);
#pragma unroll
        for (int k = 0; k < kFixed; ++k)
#pragma unroll
          for (int i = 0; i < kRows; ++i) streams[k][i] += stride * stream_stride[k];
      }
    } else if constexpr (kGeneric) {
      for (int d = 0; d < depth; ++d) {
        Lane values[kRows][kLanes];
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kLanes; ++j)
            values[i][j] = policy.combine(a[d * batch + i], P::splat(b[d * pitch + min(j * columns, cells - 1 - lo)]));
#pragma unroll 2
        for (int k = 0; k < streamed; ++k) {
          const i64 stride = step.table(tables - streamed + k).domain_stride() * (d_first + d);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            const Cell* stream = arena + at<i64>(map.mids)[k * batch + min(top + i, count - 1)] + stride;
#pragma unroll
            for (int j = 0; j < kLanes; ++j) {
              const i32 offset = at<i32>(map.los)[k * pitch + min(lo + j * columns, cells - 1)];
              values[i][j] = policy.combine(values[i][j], P::splat(read<P>(stream + offset, tables - streamed + k, map.scales)));
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kRows; ++i)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) policy.fold(sums[i][j], values[i][j], P::splat(policy.one()));
      }
    }
  };

  const auto begin = [&](Sum(&sums)[kRows][kLanes]) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kLanes; ++j) sums[i][j] = policy.start();
  };

  const auto store = [&](Sum(&sums)[kRows][kLanes], int top, int count, int outer = 0) {
    const i64 base = at<i64>(map.bases)[outer * (tables + 1) + tables] - at<i64>(map.bases)[tables];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (top + i >= count) continue;
      Cell* out = arena + at<i64>(map.mids)[streamed * batch + top + i] + base + lo_first + lo;
      Lane results[kLanes];
#pragma unroll
      for (int j = 0; j < kLanes; ++j) results[j] = policy.finish(sums[i][j]);
      if constexpr (kDense) {
        store_cells<P>(out, results, cells - lo, vector);
      } else {
#pragma unroll
        for (int j = 0; j < kLanes; ++j)
          if (lo + j * columns < cells) out[j * columns] = P::cell(results[j]);
      }
      if constexpr (P::Semiring::scaled) {
#pragma unroll
        for (int j = 0; j < kLanes; ++j)
          if ((kDense ? lo + j : lo + j * columns) < cells) seen.see(results[j]);
      }
    }
  };

  // Adds all values of d for this thread's rows `top`, `top` + rows_block, ... Every thread loads streamed values into its
  // own slots of a ring. It loads kDepth units of kRows middle cells ahead of those that it adds up, so no barrier and no
  // register waits for memory.
  const auto stream = [&](int top, int count) {
    constexpr int kVectors = kAligned ? 1 : 2;
    const auto slot = [&](int unit, int k, int i, int v) {
      return at<int4>(map.ring) + (((unit * kFixed + k) * kRows + i) * kVectors + v) * kThreads + threadIdx.x;
    };
    const Cell* streams[kFixed][kRows];
    int ahead_top = top, ahead_d = 0, ahead = 0;
    const auto locate_rows = [&] {
#pragma unroll
      for (int k = 0; k < kFixed; ++k)
#pragma unroll
        for (int i = 0; i < kRows; ++i)
          streams[k][i] = arena + at<i64>(map.mids)[k * batch + min(ahead_top + i, count - 1)] + lo_offset[k][0];
    };
    const auto fetch = [&] {
      if (ahead_top < count) {
#pragma unroll
        for (int k = 0; k < kFixed; ++k)
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            if (ahead_top + i < count) {
              const u64 address = reinterpret_cast<u64>(streams[k][i]) & ~u64(15);
#pragma unroll
              for (int v = 0; v < kVectors; ++v) copy_async(slot(ahead, k, i, v), address + 16 * v);
            }
            streams[k][i] += stream_stride[k];
          }
        if (++ahead_d == domain) {
          ahead_d = 0;
          ahead_top += rows_block;
          if (ahead_top < count) locate_rows();
        }
        ahead = ahead + 1 == kDepth ? 0 : ahead + 1;
      }
      commit_copies();
    };
    locate_rows();
#pragma unroll
    for (int u = 0; u < kDepth; ++u) fetch();
    int unit = 0;
    for (; top < count; top += rows_block) {
      u32 shifts[kFixed][kRows];
      if constexpr (!kAligned) {
#pragma unroll
        for (int k = 0; k < kFixed; ++k)
#pragma unroll
          for (int i = 0; i < kRows; ++i)
            shifts[k][i] = u32(at<i64>(map.mids)[k * batch + min(top + i, count - 1)] + lo_offset[k][0]);
      }
      Sum sums[kOuters][kRows][kLanes];
#pragma unroll
      for (int outer = 0; outer < kOuters; ++outer) begin(sums[outer]);
      const Lane* a = at<Lane>(map.a) + top;
      const Cell* b = at<Cell>(map.b) + lo;
#pragma unroll 1
      for (int d = 0; d < domain; ++d, a += batch, b += pitch) {
        await_copies<kDepth - 1>();
        Lane values[kFixed][kRows][kLanes];
#pragma unroll
        for (int k = 0; k < kFixed; ++k)
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            if constexpr (kAligned) {
              const int4 word = *slot(unit, k, i, 0);
              static_assert(sizeof(word) == sizeof(values[k][i]) || !kRing);
              memcpy(values[k][i], &word, sizeof(word));
            } else {
              realign(values[k][i], *slot(unit, k, i, 0), *slot(unit, k, i, 1), shifts[k][i] * u32(sizeof(Cell)) % 16);
              shifts[k][i] += u32(stream_stride[k]);
            }
            if constexpr (P::Semiring::scaled) {
#pragma unroll
              for (int j = 0; j < kLanes; ++j) values[k][i][j] *= stream_scale[k];
            }
          }
        unit = unit + 1 == kDepth ? 0 : unit + 1;
        fetch();
#pragma unroll
        for (int outer = 0; outer < kOuters; ++outer)
          if (outer < here) add_rows(sums[outer], values, a + outer * domain * batch, b + outer * domain * pitch);
      }
#pragma unroll
      for (int outer = 0; outer < kOuters; ++outer)
        if (outer < here) store(sums[outer], top, count, outer);
    }
    await_copies<0>();
  };

  const int outer_axes = int(step[kOuterAxes]), lo_axis = int(step.lo_axis()), axes = int(step[kAxes]);
  const int tables_a = int(step[kTablesA]), tables_ab = tables - streamed;
  for (i64 first = mid_first; first < mid_last; first += batch) {
    const int count = int(min(i64(batch), mid_last - first));
    __syncthreads();
    locate(first, count, batch, streamed, map.bases, map.mids);
    if constexpr (kWhole) {
      build<P, Lane, kOuters>(map.a, batch, count, first, outer_axes, lo_axis, 0, tables_a, 0, domain, arena, map, policy, here);
      if (first == mid_first) {
        build<P, Cell, kOuters>(map.b, pitch, cells, lo_first, lo_axis, axes, tables_a, tables_ab, 0, domain, arena, map, policy,
                                here);
      }
      __syncthreads();
      if constexpr (kRing) {
        if (busy && row * kRows < count) stream(row * kRows, count);
      } else {
        for (int top = row * kRows; busy && top < count; top += rows_block) {
          Sum sums[kRows][kLanes];
          begin(sums);
          accumulate(sums, top, count, 0, domain);
          store(sums, top, count);
        }
      }
    } else {
      const int top = row * kRows;
      Sum sums[kRows][kLanes];
      begin(sums);
      for (int d = 0; d < domain; d += slab) {
        const int depth = min(slab, domain - d);
        if (d > 0) __syncthreads();
        build<P, Lane>(map.a, batch, count, first, outer_axes, lo_axis, 0, tables_a, d, depth, arena, map, policy);
        build<P, Cell>(map.b, pitch, cells, lo_first, lo_axis, axes, tables_a, tables_ab, d, depth, arena, map, policy);
        __syncthreads();
        if (busy && top < count) accumulate(sums, top, count, d, depth);
      }
      if (busy) store(sums, top, count);
    }
  }
  if constexpr (P::Semiring::scaled) seen.publish(peaks + 2 * number);
}

}  // namespace elimina
