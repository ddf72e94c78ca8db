// One large step with a streamed table that lacks some outer axes, in one launch: the cells of a block are a box of outer, mid and lo
// cells, and each of A [outer][mid], B [outer][lo] and the streamed table [mid][lo] is a face of it. Each thread owns kOuters x kRows x
// kLanes cells of the box in registers, so that what it reads from shared memory serves kOuters, kRows or kLanes combinations; and
// kItems cells of the faces, whose next kDepth values it loads while the threads work on the last ones.
#include "tile_parts.cuh"

namespace elimina {

// A block takes `outers` of the `sharing` successive outer cells that have the same streamed values, `batch` mid cells and `chunk` lo
// cells; its threads are [outers / kOuters][batch / kRows][columns]. `vector`: bytes of the words that the output may be written in.
template <class P, int kOuters, int kRows, int kItems, int kDepth, int kSize, int kBlocks>
__global__ void __launch_bounds__(kSize, kBlocks)
    faces(const i64* __restrict__ record, int record_words, int number, int tables, int sharing, int outers, int splits, int batch,
          int chunks, int chunk, int columns, int vector, typename P::Cell* arena, u64* peaks, const i32* stop,
          typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  constexpr int kLanes = 16 / int(sizeof(Lane)), kCells = kLanes * P::width;
  if (stopped(stop)) return;
  const Map map = map_of<P>(record_words, tables, tables, batch, 2 * kDepth, chunk, 2 * tables * chunk, outers);

  u64 block = blockIdx.x;
  const i64 lo_first = i64(block % u32(chunks)) * chunk;
  block /= u32(chunks);
  const i64 mid_first = i64(block % u32(splits)) * batch;
  block /= u32(splits);
  const u32 parts = u32((sharing + outers - 1) / outers);
  const int shared_outer = int(block % parts) * outers, here = min(outers, sharing - shared_outer);
  prepare<P>(record, record_words, block / parts * u32(sharing) + u32(shared_outer), peaks, map.bases, map.scales, here);
  __syncthreads();
  const StepView step{shared};
  const int cells = int(min(i64(chunk), step[kLoCells] - lo_first)), count = int(min(i64(batch), step[kMidCells] - mid_first));
  const int domain = int(step[kDomain]);
  const P policy(parameter);
  locate(mid_first, count, batch, tables, map.bases, map.mids);
  locate_lo<i64>(lo_first, cells, chunk, 0, tables, map.los);
  __syncthreads();

  // Face 0 is A, 1 is B, 2 the streamed table.
  struct Item {
    int face, row, column;
  };
  const auto item_of = [&](int i) -> Item {
    const int face = i < here * count ? 0 : i < here * (count + cells) ? 1 : 2;
    const int width = face == 0 ? count : cells, cell = i - here * (face == 0 ? 0 : face == 1 ? count : count + cells);
    return {face, cell / width, cell % width};
  };
  const auto first_table = [&](int face) { return face == 0 ? 0 : int(face == 1 ? step[kTablesA] : step[kTablesA] + step[kTablesB]); };
  const auto base = [&](int table, int outer) { return at<i64>(map.bases)[outer * (tables + 1) + table]; };
  const auto mid_offset = [&](int table, int mid) { return at<i64>(map.mids)[table * batch + mid]; };
  const auto cell_of = [&](Item item, int table) {
    return arena + (item.face == 0 ? base(table, item.row) - base(table, 0) + mid_offset(table, item.column)
                                   : at<i64>(map.los)[table * chunk + item.column] +
                                         (item.face == 1 ? base(table, item.row) : mid_offset(table, item.row)));
  };
  const int total = here * (count + cells) + count * cells;
  const Cell* from[kItems];
  i64 stride[kItems];
  int slot[kItems], pitch[kItems];  // in bytes
#pragma unroll
  for (int k = 0; k < kItems; ++k) {
    const Item item = item_of(min(int(threadIdx.x) + k * kSize, total - 1));
    const int table = min(first_table(item.face), tables - 1);
    from[k] = cell_of(item, table);
    stride[k] = step.table(table).domain_stride();
    const int size = item.face == 0 ? int(sizeof(Lane)) : int(sizeof(Cell)), width = item.face == 0 ? batch : chunk;
    slot[k] = (item.face == 0 ? map.a : item.face == 1 ? map.b : map.ring) + (item.row * width + item.column) * size;
    pitch[k] = (item.face == 2 ? batch : outers) * width * size;
  }
  const int whole_a = int(step[kTablesA]) == 1, whole_b = int(step[kTablesB]) == 1;

  Cell values[kItems][kDepth];
  const auto load = [&](int depth) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      if (int(threadIdx.x) + k * kSize >= total) continue;
#pragma unroll
      for (int u = 0; u < kDepth; ++u, from[k] += stride[k])
        if (u < depth) values[k][u] = __ldg(from[k]);
    }
  };
  // A face of another number of tables than one: the others are read now.
  const auto complete = [&](int i, int d, int depth, Cell(&cell)[kDepth]) {
    const Item item = item_of(i);
    const int first = first_table(item.face), last = item.face == 2 ? tables : first_table(item.face + 1);
#pragma unroll 1
    for (int table = first + 1; table < last; ++table) {
      const Cell* other = cell_of(item, table) + d * step.table(table).domain_stride();
#pragma unroll
      for (int u = 0; u < kDepth; ++u, other += step.table(table).domain_stride())
        if (u < depth) cell[u] = policy.combine_cells(cell[u], read<P>(other, table, map.scales));
    }
#pragma unroll
    for (int u = 0; u < kDepth; ++u)
      if (first == last) cell[u] = policy.one();
  };
  const auto put = [&](int half, int d, int depth) {
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const int i = int(threadIdx.x) + k * kSize;
      if (i >= total) continue;
      const int face = i < here * count ? 0 : i < here * (count + cells) ? 1 : 2;
      if constexpr (P::Semiring::scaled) {
        const auto scale = at<typename P::Semiring::Value>(map.scales)[min(first_table(face), tables - 1)];
#pragma unroll
        for (int u = 0; u < kDepth; ++u) values[k][u] *= scale;
      }
      if ((face == 0 && !whole_a) || (face == 1 && !whole_b)) complete(i, d, depth, values[k]);
      int to = slot[k] + half * kDepth * pitch[k];
#pragma unroll
      for (int u = 0; u < kDepth; ++u, to += pitch[k]) {
        if (u >= depth) continue;
        if (face == 0) {
          *at<Lane>(to) = to_slot<P, Lane>(values[k][u]);
        } else {
          *at<Cell>(to) = values[k][u];
        }
      }
    }
  };

  const int column = int(threadIdx.x) % columns, row = int(threadIdx.x) / columns, rows = batch / kRows;
  const int top = row % rows * kRows, outer = row / rows * kOuters, lo = column * kCells;
  const bool busy = outer < here && top < count && lo < cells;
  Sum sums[kOuters][kRows][kLanes];
#pragma unroll
  for (int o = 0; o < kOuters; ++o)
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kLanes; ++j) sums[o][i][j] = policy.start();
  load(min(kDepth, domain));
  for (int d = 0, half = 0; d < domain; d += kDepth, half ^= 1) {
    const int depth = min(kDepth, domain - d);
    put(half, d, depth);
    __syncthreads();
    if (d + kDepth < domain) load(min(kDepth, domain - d - kDepth));
    if (!busy) continue;
    const Lane* a = at<Lane>(map.a) + (half * kDepth * outers + outer) * batch + top;
    const Cell* b = at<Cell>(map.b) + (half * kDepth * outers + outer) * chunk + lo;
    const Cell* s = at<Cell>(map.ring) + (half * kDepth * batch + top) * chunk + lo;
#pragma unroll 2
    for (int u = 0; u < depth; ++u, a += outers * batch, b += outers * chunk, s += batch * chunk) {
      Lane left[kOuters][kRows], right[kOuters][kLanes];
#pragma unroll
      for (int o = 0; o < kOuters; ++o) {
        copy_words(left[o], a + o * batch);
        copy_words(right[o], b + o * chunk);
      }
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        Lane next[kLanes];
        copy_words(next, s + i * chunk);
#pragma unroll
        for (int o = 0; o < kOuters; ++o)
#pragma unroll
          for (int j = 0; j < kLanes; ++j) policy.fold(sums[o][i][j], policy.combine(left[o][i], right[o][j]), next[j]);
      }
    }
  }

  Peaks<typename P::Semiring> seen;
#pragma unroll
  for (int o = 0; o < kOuters; ++o) {
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      if (!busy || outer + o >= here || top + i >= count) continue;
      Lane results[kLanes];
#pragma unroll
      for (int j = 0; j < kLanes; ++j) results[j] = policy.finish(sums[o][i][j]);
      const i64 offset = base(tables, outer + o) - base(tables, 0) + mid_offset(tables, top + i) + lo_first + lo;
      store_cells<P>(arena + offset, results, cells - lo, vector);
      if constexpr (P::Semiring::scaled) {
#pragma unroll
        for (int j = 0; j < kLanes; ++j)
          if (lo + j < cells) seen.see(results[j]);
      }
    }
  }
  if constexpr (P::Semiring::scaled) seen.publish(peaks + 2 * number);
}

}  // namespace elimina
