// One large step with a streamed table that lacks some slow axes, in one launch. The cells of a block are a box of slow,
// middle and fast cells. Each of lhs [slow][middle], rhs [slow][fast] and the streamed table [middle][fast] is a face of
// the box. The first threads are workers: each owns kOuters x kRows x kLanes cells of the box in registers. A number from
// shared memory thus serves kOuters, kRows or kLanes combinations. The other threads are loaders: each owns up to kItems
// cells of the faces. While the workers combine the faces for kDepth values of d, the loaders write the faces for the
// next kDepth values to shared memory, and already load those for the values after them.
#include "tile_parts.cuh"

namespace elimina {

template <class T>
__device__ __forceinline__ T choose(int face, const T (&three)[3]) {
  return face == 0 ? three[0] : face == 1 ? three[1] : three[2];
}

// `sharing` successive slow cells have the same streamed values. A block takes `outers` of these, `batch` middle cells and
// `chunk` fast cells. Its `workers` are [outers / kOuters][batch / kRows][columns], and as many more as fill a warp.
// `vector`: bytes of the words in which the output may be written.
template <class P, int kOuters, int kRows, int kItems, int kDepth, int kSize, int kBlocks>
__global__ void __launch_bounds__(kSize, kBlocks)
    faces(const i64* __restrict__ record, int record_words, int number, int tables, int sharing, int outers, int splits, int batch,
          int chunks, int chunk, int columns, int workers, int vector, typename P::Cell* arena, u64* peaks, const i32* stop,
          typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  constexpr int kLanes = 16 / int(sizeof(Lane)), kCells = kLanes * P::width;
  const Map map = map_of<P>(record_words, tables, tables, batch, 2 * kDepth, chunk, 2 * tables * chunk, outers);

  u64 block = blockIdx.x;
  const i64 lo_first = i64(block % u32(chunks)) * chunk;
  block /= u32(chunks);
  const i64 mid_first = i64(block % u32(splits)) * batch;
  block /= u32(splits);
  const u32 shares = u32((sharing + outers - 1) / outers);
  const int shared_outer = int(block % shares) * outers, here = min(outers, sharing - shared_outer);
  const u64 first_outer = block / shares * u32(sharing) + u32(shared_outer);
  if (!prepare<P>(record, record_words, first_outer, peaks, stop, map.bases, map.scales, here)) return;
  const StepView step{shared};
  const int cells = int(min(i64(chunk), step[kLoCells] - lo_first)), count = int(min(i64(batch), step[kMidCells] - mid_first));
  const int domain = int(step[kDomain]);
  const P policy(parameter, step);
  locate(mid_first, count, batch, tables, map.bases, map.mids);
  locate_lo<i64>(lo_first, cells, chunk, 0, tables, map.los);
  __syncthreads();

  // Face 0 is lhs, 1 is rhs, 2 the streamed table.
  struct Item {
    int face, row, column;
  };
  const auto face_of = [&](int i) { return i < here * count ? 0 : i < here * (count + cells) ? 1 : 2; };
  const auto item_of = [&](int i) -> Item {
    const int face = face_of(i), width = face == 0 ? count : cells;
    const int cell = i - here * (face == 0 ? 0 : face == 1 ? count : count + cells);
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
  if (int(threadIdx.x) >= workers) {
    const int total = here * (count + cells) + count * cells, loaders = kSize - workers, loader = int(threadIdx.x) - workers;
    const auto stride_of = [&](int face) { return step.table(min(first_table(face), tables - 1)).domain_stride(); };
    const i64 strides[] = {stride_of(0), stride_of(1), stride_of(2)};
    // Bytes between consecutive values of d in shared memory, for each face.
    const int pitches[] = {outers * batch * int(sizeof(Lane)), outers * chunk * int(sizeof(Cell)), batch * chunk * int(sizeof(Cell))};
    const Cell* from[kItems];
    int slot[kItems];
#pragma unroll
    for (int k = 0; k < kItems; ++k) {
      const Item item = item_of(min(loader + k * loaders, total - 1));
      from[k] = cell_of(item, min(first_table(item.face), tables - 1));
      slot[k] = item.face == 0 ? map.a + (item.row * batch + item.column) * int(sizeof(Lane))
                               : (item.face == 1 ? map.b : map.ring) + (item.row * chunk + item.column) * int(sizeof(Cell));
    }
    Cell values[kItems][kDepth];
    const auto load = [&](int depth) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        if (loader + k * loaders >= total) continue;
        i64 stride = choose(face_of(loader + k * loaders), strides);
        hide(stride);
#pragma unroll
        for (int u = 0; u < kDepth; ++u, from[k] += stride)
          if (u < depth) values[k][u] = __ldg(from[k]);
      }
    };
    // Joins the further tables of a face with the first one; the cells of a face without tables are 1.
    const auto complete = [&](Item item, int d, int depth, Cell(&cell)[kDepth]) {
      const int first = first_table(item.face), last = item.face == 2 ? tables : first_table(item.face + 1);
#pragma unroll 1
      for (int table = first + 1; table < last; ++table) {
        const i64 hop = step.table(table).domain_stride();
        const Cell* other = cell_of(item, table) + d * hop;
#pragma unroll
        for (int u = 0; u < kDepth; ++u, other += hop)
          if (u < depth) cell[u] = policy.combine_cells(cell[u], read<P>(other, table, map.scales));
      }
#pragma unroll
      for (int u = 0; u < kDepth; ++u)
        if (first == last) cell[u] = policy.one();
    };
    const bool single = step[kTablesA] == 1 && step[kTablesB] == 1;
    const auto put = [&](int half, int d, int depth) {
#pragma unroll
      for (int k = 0; k < kItems; ++k) {
        const int i = loader + k * loaders;
        if (i >= total) continue;
        if constexpr (P::Semiring::scaled) {
          const auto scale = at<typename P::Semiring::Value>(map.scales)[min(first_table(item_of(i).face), tables - 1)];
#pragma unroll
          for (int u = 0; u < kDepth; ++u) values[k][u] *= scale;
        }
        if (!single) complete(item_of(i), d, depth, values[k]);
        int pitch = choose(face_of(i), pitches);
        hide(pitch);
        int to = slot[k] + half * kDepth * pitch;
#pragma unroll
        for (int u = 0; u < kDepth; ++u, to += pitch) {
          if (u >= depth) continue;
          if (same<Lane, Cell> || i >= here * count) {
            *at<Cell>(to) = values[k][u];
          } else {
            *at<Lane>(to) = to_slot<P, Lane>(values[k][u]);
          }
        }
      }
    };
    load(min(kDepth, domain));
    for (int d = 0, half = 0; d < domain; d += kDepth, half ^= 1) {
      put(half, d, min(kDepth, domain - d));
      if (d + kDepth < domain) load(min(kDepth, domain - d - kDepth));
      meet<kSize>();
    }
    return;
  }

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
  for (int d = 0, half = 0; d < domain; d += kDepth, half ^= 1) {
    meet<kSize>();
    if (!busy) continue;
    const int depth = min(kDepth, domain - d);
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
