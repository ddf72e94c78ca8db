// One large step with a streamed table that lacks some outer axes, in one launch: the cells of a block are a box of outer, mid and lo
// cells, and each of A [outer][mid], B [outer][lo] and the streamed table [mid][lo] is a face of it. For `slab` values of d a block
// keeps the three faces in shared memory; each thread owns kOuters x kRows x kLanes cells in registers, so that whatever is read
// serves kOuters, kRows or kLanes combinations.
#include "tile_parts.cuh"

namespace elimina {

constexpr int kFaceFlight = 16;  // values of d whose loads are in flight together

// slots[d - d_first][row][column] = product of the tables [first, last) at the sum of a row's and a column's offset in a table:
// row_offset(table, row) + column_offset(table, column).
template <class P, class Slot, class Rows, class Columns>
__device__ __forceinline__ void fill_face(int slots_at, int rows, int columns, int row_pitch, int pitch, int first, int last,
                                          i64 d_first, int depth, const typename P::Cell* arena, int scales_at, P policy,
                                          Rows row_offset, Columns column_offset) {
  using Cell = typename P::Cell;
  const StepView step{shared};
#pragma unroll 1
  for (int i = threadIdx.x; i < rows * columns; i += int(blockDim.x)) {
    const int row = i / columns, column = i - row * columns;
    Slot* const slots = at<Slot>(slots_at) + row * row_pitch + column;
#pragma unroll 1
    for (int d = 0; d < depth; d += kFaceFlight) {
      Slot* slot = slots + d * pitch;
      if (first == last) {
#pragma unroll 1
        for (int u = 0; u < min(kFaceFlight, depth - d); ++u, slot += pitch) *slot = to_slot<P, Slot>(policy.one());
        continue;
      }
#pragma unroll 1
      for (int number = first; number < last; ++number, slot = slots + d * pitch) {
        const i64 stride = step.table(number).domain_stride();
        const Cell* from = arena + row_offset(number, row) + column_offset(number, column) + (d_first + d) * stride;
        Cell values[kFaceFlight];
#pragma unroll
        for (int u = 0; u < kFaceFlight; ++u, from += stride)
          if (d + u < depth) values[u] = read<P>(from, number, scales_at);
#pragma unroll
        for (int u = 0; u < kFaceFlight; ++u, slot += pitch) {
          if (d + u >= depth) continue;
          *slot = to_slot<P, Slot>(number == first ? values[u] : policy.combine_cells(of_slot<P, Slot>(*slot), values[u]));
        }
      }
    }
  }
}

// A block takes `outers` of the `sharing` successive outer cells that have the same streamed values, `batch` mid cells and `chunk` lo
// cells: `groups` x (threads / groups / columns) x `columns` threads; `vector`: bytes of the words that the output may be written in.
template <class P, int kOuters, int kRows, int kSize, int kBlocks>
__global__ void __launch_bounds__(kSize, kBlocks)
    faces(const i64* __restrict__ record, int record_words, int number, int tables, int sharing, int outers, int groups, int splits,
          int batch, int chunks, int chunk, int columns, int slab, int vector, typename P::Cell* arena, u64* peaks, const i32* stop,
          typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  constexpr int kLanes = 16 / int(sizeof(Lane)), kCells = kLanes * P::width;
  if (stopped(stop)) return;
  const Map map = map_of<P>(record_words, tables, tables, batch, slab, chunk, 2 * tables * chunk, outers);

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
  const int domain = int(step[kDomain]), tables_a = int(step[kTablesA]), tables_ab = tables - 1;
  const P policy(parameter);
  locate(mid_first, count, batch, tables, map.bases, map.mids);
  locate_lo<i64>(lo_first, cells, chunk, 0, tables, map.los);

  const int column = int(threadIdx.x) % columns, row = int(threadIdx.x) / columns;
  const int rows = batch / kRows;  // of threads
  const int top = row % rows * kRows, outer = row / rows * kOuters, lo = column * kCells;
  const bool busy = row < rows * groups && outer < here && top < count && lo < cells;
  const i64* bases = at<i64>(map.bases);
  const auto base = [&](int table, int outer_cell) { return bases[outer_cell * (tables + 1) + table]; };
  const auto mid_offset = [&](int table, int mid) { return at<i64>(map.mids)[table * batch + mid]; };
  const auto lo_offset = [&](int table, int cell) { return at<i64>(map.los)[table * chunk + cell]; };

  Sum sums[kOuters][kRows][kLanes];
#pragma unroll
  for (int o = 0; o < kOuters; ++o)
#pragma unroll
    for (int i = 0; i < kRows; ++i)
#pragma unroll
      for (int j = 0; j < kLanes; ++j) sums[o][i][j] = policy.start();
  for (int d = 0; d < domain; d += slab) {
    const int depth = min(slab, domain - d);
    __syncthreads();
    fill_face<P, Lane>(map.a, here, count, batch, outers * batch, 0, tables_a, d, depth, arena, map.scales, policy,
                       [&](int table, int cell) { return base(table, cell) - base(table, 0); }, mid_offset);
    fill_face<P, Cell>(map.b, here, cells, chunk, outers * chunk, tables_a, tables_ab, d, depth, arena, map.scales, policy, base,
                       lo_offset);
    fill_face<P, Cell>(map.ring, count, cells, chunk, batch * chunk, tables_ab, tables, d, depth, arena, map.scales, policy,
                       mid_offset, lo_offset);
    __syncthreads();
    if (!busy) continue;
    const Lane* a = at<Lane>(map.a) + outer * batch + top;
    const Cell* b = at<Cell>(map.b) + outer * chunk + lo;
    const Cell* s = at<Cell>(map.ring) + top * chunk + lo;
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
