// One large step in one launch. A block takes one outer cell, a chunk of the lo cells and a range of the mid cells. It keeps
// B[d][lo] and, for a batch of mid cells, A[mid][d] in shared memory; each thread owns kRows mid cells x kLanes lanes of lo cells
// in registers and walks d, reading only the streamed tables. Without streamed tables this is a matrix product in the semiring.
// No division in the inner loops: offsets of lo cells are computed once a block, those of mid cells once a batch.
#include "common.cuh"

namespace elimina {

enum TileWord : int {
  kRecord,   // where the step's record starts
  kNumber,   // of the step
  kChunks,   // of the lo cells
  kChunk,    // cells in each but the last
  kSplits,   // of the mid cells
  kMids,     // mid cells in each but the last
  kColumns,  // threads beside each other along lo
  kBatch,    // mid cells whose offsets and A rows are in shared memory together
  kSlab,     // values of d in shared memory together
  kVector,   // whether the output may be written in 16-byte words
  kTileWords
};

// How cells sit in a thread's registers. Single: one a register.
template <class S, class Stored = typename S::Value>
struct Single {
  using Semiring = S;
  using Cell = Stored;
  using Lane = typename S::Value;
  using Sum = typename S::Sum;
  static constexpr int width = 1;
  S s;
  __device__ explicit Single(Cell parameter) : s(make_semiring<S>(parameter)) {}
  __device__ Cell one() const { return Cell(s.one()); }
  __device__ Cell combine_cells(Cell a, Cell b) const { return Cell(s.combine(Lane(a), Lane(b))); }
  static __device__ Lane splat(Cell cell) { return Lane(cell); }
  static __device__ Cell cell(Lane lane, int = 0) { return Cell(lane); }
  __device__ Lane combine(Lane a, Lane b) const { return s.combine(a, b); }
  __device__ Sum start() const { return s.start(); }
  __device__ void fold(Sum& sum, Lane a, Lane b) const { elimina::fold(s, sum, a, b); }
  __device__ Lane finish(Sum sum) const { return s.finish(sum); }
};

// Pairs: two 16-bit cells a register, added and compared in one instruction; the planner proved that no sum leaves 16 bits.
struct Pairs {
  using Semiring = MinSum<i16>;
  using Cell = i16;
  using Lane = u32;
  using Sum = u32;
  static constexpr int width = 2;
  i16 infinity;
  __device__ explicit Pairs(i16 parameter) : infinity(parameter) {}
  __device__ Cell one() const { return 0; }
  __device__ Cell combine_cells(Cell a, Cell b) const { return Cell(a + b); }
  static __device__ Lane splat(Cell cell) { return u32(static_cast<unsigned short>(cell)) * 0x10001u; }
  static __device__ Cell cell(Lane lane, int half = 0) { return Cell(lane >> 16 * half & 0xffffu); }
  __device__ Lane combine(Lane a, Lane b) const { return __vadd2(a, b); }
  __device__ Sum start() const { return splat(infinity); }
  __device__ void fold(Sum& sum, Lane a, Lane b) const { sum = __viaddmin_s16x2(a, b, sum); }
  __device__ Lane finish(Sum sum) const { return sum; }
};

// Digits of a cell number times strides; 64-bit division only where the number needs it.
template <class Stride>
__device__ i64 offset_of(StepView step, u64 cell, i64 first, i64 last, Stride stride) {
  i64 offset = 0;
  for (i64 axis = last - 1; axis >= first; --axis) {
    const u64 size = u64(step.size(axis));
    const u64 rest = cell >> 32 ? cell / size : u64(u32(cell) / u32(size));
    offset += i64(cell - rest * size) * stride(axis);
    cell = rest;
  }
  return offset;
}

constexpr int kAhead = 8;  // values of d whose loads are in flight together while A and B are built

template <class P>
struct Block {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Scale = typename P::Semiring::Value;
  StepView step;
  const Cell* arena;
  const i64* bases;     // of each table, then of the output: offsets at this block's outer cell
  const Scale* scales;  // of each table
  P policy;

  __device__ Cell read(const Cell* cell, int table) const {
    if constexpr (P::Semiring::scaled) {
      return __ldg(cell) * scales[table];
    } else {
      return __ldg(cell);
    }
  }

  // slots[d - d_first][i] = product of the tables [first, last) at cell number cell_first + i of the axes [axis_first, axis_last).
  template <class Slot>
  __device__ void build(Slot* slots, int pitch, int count, u64 cell_first, i64 axis_first, i64 axis_last, int first, int last,
                        i64 d_first, int depth) const {
    const int groups = count < kThreads ? kThreads / count : 1;
    const int group = count < kThreads ? int(threadIdx.x) / count : 0;
    if (group >= groups) return;
    for (int i = count < kThreads ? int(threadIdx.x) % count : int(threadIdx.x); i < count; i += kThreads) {
      if (first == last) {
        for (int d = group; d < depth; d += groups) slots[d * pitch + i] = splat_to<Slot>(policy.one());
      }
      for (int number = first; number < last; number += 2) {
        const bool two = number + 1 < last;
        const TableView one = step.table(number), other = step.table(two ? number + 1 : number);
        const auto start = [&](TableView table, int at) {
          return arena + bases[at] + (d_first + group) * table.domain_stride() +
                 offset_of(step, cell_first + i, axis_first, axis_last, [&](i64 axis) { return table.stride(axis); });
        };
        const Cell* cell = start(one, number);
        const Cell* other_cell = two ? start(other, number + 1) : cell;
        const i64 stride = one.domain_stride() * groups, other_stride = other.domain_stride() * groups;
        Slot* slot = slots + group * pitch + i;
        for (int d = group; d < depth; d += kAhead * groups) {
          Cell values[kAhead], others[kAhead];
#pragma unroll
          for (int u = 0; u < kAhead; ++u) {
            if (d + u * groups < depth) {
              values[u] = read(cell, number);
              if (two) others[u] = read(other_cell, number + 1);
            }
            cell += stride;
            other_cell += other_stride;
          }
#pragma unroll
          for (int u = 0; u < kAhead; ++u) {
            if (d + u * groups < depth) {
              Cell value = number == first ? values[u] : policy.combine_cells(cell_of(*slot), values[u]);
              if (two) value = policy.combine_cells(value, others[u]);
              *slot = splat_to<Slot>(value);
            }
            slot += groups * pitch;
          }
        }
      }
    }
  }

 private:
  template <class Slot>
  static __device__ Slot splat_to(Cell value) {
    if constexpr (same<Slot, Cell>) {
      return value;
    } else {
      return P::splat(value);
    }
  }
  static __device__ Cell cell_of(Cell slot) { return slot; }
  template <class Slot>
  static __device__ Cell cell_of(Slot slot) {
    return P::cell(slot);
  }
};

// Copies an array in 16-byte words.
template <class To, class From>
__device__ __forceinline__ void copy_words(To& to, const From* from) {
  static_assert(sizeof(To) % 16 == 0);
  int4 words[sizeof(To) / 16];
#pragma unroll
  for (int j = 0; j < int(sizeof(To)) / 16; ++j) words[j] = reinterpret_cast<const int4*>(from)[j];
  memcpy(to, words, sizeof(To));
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

template <class P, int kStreamed, bool kDense, int kRows, int kLanes, int kDepth, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    tile(const i64* __restrict__ words, i64 layout_at, typename P::Cell* arena, u64* peaks, const i32* stop,
         typename P::Cell parameter) {
  using Cell = typename P::Cell;
  using Lane = typename P::Lane;
  using Sum = typename P::Sum;
  using Scale = typename P::Semiring::Value;
  constexpr bool kGeneric = kStreamed < 0;
  constexpr int kFixed = kGeneric ? 1 : (kStreamed == 0 ? 1 : kStreamed);
  extern __shared__ __align__(16) i64 shared[];
  if (stopped(stop)) return;

  const i64* layout = words + layout_at;
  const i64* record = words + layout[kRecord];
  for (int i = threadIdx.x; i < record[kWords]; i += kThreads) shared[i] = record[i];
  __syncthreads();
  const StepView step{shared};
  const int tables = int(step[kTables]), streams_from = int(step[kTablesA] + step[kTablesB]);
  const int streamed = kGeneric ? tables - streams_from : kStreamed;
  const int batch = int(layout[kBatch]), slab = int(layout[kSlab]), columns = int(layout[kColumns]);
  const i64 domain = step[kDomain], mid_axis = step[kOuterAxes], lo_axis = step.lo_axis(), axes = step[kAxes];

  // This block's part.
  u64 block = blockIdx.x;
  const i64 split = i64(block % u64(layout[kSplits]));
  block /= u64(layout[kSplits]);
  const i64 lo_first = i64(block % u64(layout[kChunks])) * layout[kChunk];
  const u64 outer = block / u64(layout[kChunks]);
  const int cells = int(min(layout[kChunk], step[kLoCells] - lo_first));
  const i64 mid_first = split * layout[kMids], mid_last = min(mid_first + layout[kMids], step[kMidCells]);

  // Shared memory: the record, bases, scales, offsets of mid cells, offsets of lo cells, A, B. cuda_layout.py adds up the same.
  constexpr int kCellsThread = kLanes * P::width;
  const int pitch = (int(layout[kChunk]) + kCellsThread - 1) / kCellsThread * kCellsThread;
  const int bases_at = (int(record[kWords]) + 1) / 2 * 2, mids_at = bases_at + 2 * tables + 1;
  const int los_at = 8 * (mids_at + (streamed + 1) * batch);  // from here on in bytes
  const int a_at = (los_at + (kGeneric ? 4 * streamed * pitch : 0) + 15) / 16 * 16;
  const int b_at = (a_at + slab * batch * int(sizeof(Lane)) + 15) / 16 * 16;
  // Sums with the array itself: the compiler must see that these are addresses of shared memory.
  i64* bases = shared + bases_at;
  Scale* scales = reinterpret_cast<Scale*>(shared + bases_at + tables + 1);
  i64* mids = shared + mids_at;  // [streamed tables, then the output][batch]
  i32* los = reinterpret_cast<i32*>(reinterpret_cast<unsigned char*>(shared) + los_at);
  Lane* slab_a = reinterpret_cast<Lane*>(reinterpret_cast<unsigned char*>(shared) + a_at);
  Cell* slab_b = reinterpret_cast<Cell*>(reinterpret_cast<unsigned char*>(shared) + b_at);

  for (int number = threadIdx.x; number <= tables; number += kThreads) {
    const bool output = number == tables;
    const TableView table = step.table(output ? 0 : number);
    bases[number] = (output ? step[kOut] : table.offset()) + offset_of(step, outer, 0, mid_axis, [&](i64 axis) {
                      return output ? step.out_stride(axis) : table.stride(axis);
                    });
    if (!output) scales[number] = scale_of<typename P::Semiring>(table, peaks);
  }
  const P policy(parameter);
  const Block<P> part{step, arena, bases, scales, policy};
  if constexpr (kGeneric) {
    for (int i = threadIdx.x; i < streamed * cells; i += kThreads) {
      const TableView table = step.table(streams_from + i / cells);
      los[i / cells * pitch + i % cells] =
          i32(offset_of(step, lo_first + i % cells, lo_axis, axes, [&](i64 axis) { return table.stride(axis); }));
    }
  }

  const int column = int(threadIdx.x) % columns, row = int(threadIdx.x) / columns, rows_block = kThreads / columns * kRows;
  const int lo = kDense ? column * kCellsThread : column;  // within the chunk; the others `columns` further on
  i32 lo_offset[kFixed][kDense ? 1 : kLanes];
  i64 stream_stride[kFixed];
  Scale stream_scale[kFixed];
  if constexpr (kStreamed > 0) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kFixed; ++k) {
      const TableView table = step.table(streams_from + k);
      stream_stride[k] = table.domain_stride();
      stream_scale[k] = scales[streams_from + k];
#pragma unroll
      for (int j = 0; j < (kDense ? 1 : kLanes); ++j) {
        const int cell = min(lo + j * columns, cells - 1);
        lo_offset[k][j] = kDense ? i32(lo_first) + lo
                                 : i32(offset_of(step, lo_first + cell, lo_axis, axes,
                                                 [&](i64 axis) { return table.stride(axis); }));
      }
    }
  }
  const bool busy = row * columns + column < kThreads / columns * columns && lo < cells;
  Peaks<typename P::Semiring> seen;

  for (i64 first = mid_first; first < mid_last; first += batch) {
    const int count = int(min(i64(batch), mid_last - first));
    __syncthreads();
    for (int i = threadIdx.x; i < (streamed + 1) * count; i += kThreads) {
      const int number = i / count, mid = i % count;
      const bool output = number == streamed;
      const TableView table = step.table(output ? 0 : streams_from + number);
      mids[number * batch + mid] =
          bases[output ? tables : streams_from + number] + offset_of(step, first + mid, mid_axis, lo_axis, [&](i64 axis) {
            return output ? step.out_stride(axis) : table.stride(axis);
          });
    }
    Sum sums[kRows][kLanes];
    for (i64 d_first = 0; d_first < domain; d_first += slab) {
      const int depth = int(min(i64(slab), domain - d_first));
      if (d_first > 0) __syncthreads();
      part.build(slab_a, batch, count, first, mid_axis, lo_axis, 0, int(step[kTablesA]), d_first, depth);
      if (slab < domain || first == mid_first) {
        part.build(slab_b, pitch, cells, lo_first, lo_axis, axes, int(step[kTablesA]), streams_from, d_first, depth);
      }
      __syncthreads();
      for (int top = row * kRows; busy && top < count; top += rows_block) {
        if (d_first == 0) {
#pragma unroll
          for (int i = 0; i < kRows; ++i)
#pragma unroll
            for (int j = 0; j < kLanes; ++j) sums[i][j] = policy.start();
        }
        const Lane* a = slab_a + top;
        const Cell* b = slab_b + lo;
        if constexpr (kStreamed == 0) {
#pragma unroll 4
          for (int d = 0; d < depth; ++d, a += batch, b += pitch) {
            Lane lanes[kLanes], left[kRows];
            load_shared<P, kDense, kLanes>(lanes, b, columns);
            copy_words(left, a);
#pragma unroll
            for (int i = 0; i < kRows; ++i)
#pragma unroll
              for (int j = 0; j < kLanes; ++j) policy.fold(sums[i][j], left[i], lanes[j]);
          }
        } else if constexpr (kStreamed > 0) {
          const Cell* streams[kFixed][kRows];
#pragma unroll
          for (int k = 0; k < kFixed; ++k)
#pragma unroll
            for (int i = 0; i < kRows; ++i) {
              streams[k][i] = arena + mids[k * batch + min(top + i, count - 1)] + d_first * stream_stride[k];
              if constexpr (kDense) streams[k][i] += lo_offset[k][0];
            }
          const int steps = (depth + kDepth - 1) / kDepth, stride = (depth + steps - 1) / steps;
          for (int d = 0; d < depth; d += stride) {
            Lane values[kFixed][kDepth][kRows][kLanes];
#pragma unroll
            for (int k = 0; k < kFixed; ++k)
#pragma unroll
              for (int u = 0; u < kDepth; ++u)
#pragma unroll
                for (int i = 0; i < kRows; ++i) {
                  if (u < stride && d + u < depth && top + i < count) {
                    const Cell* cell = streams[k][i] + u * stream_stride[k];
                    if constexpr (kDense) {
                      const int4 word = __ldcs(reinterpret_cast<const int4*>(cell));
                      static_assert(sizeof(values[k][u][i]) == sizeof(word));
                      memcpy(values[k][u][i], &word, sizeof(word));
                    } else {
#pragma unroll
                      for (int j = 0; j < kLanes; ++j) values[k][u][i][j] = P::splat(__ldg(cell + lo_offset[k][j]));
                    }
                  }
                }
#pragma unroll
            for (int u = 0; u < kDepth; ++u) {
              if (u < stride && d + u < depth) {
                Lane lanes[kLanes];
                load_shared<P, kDense, kLanes>(lanes, b + (d + u) * pitch, columns);
#pragma unroll
                for (int i = 0; i < kRows; ++i) {
                  const Lane left = a[(d + u) * batch + i];
#pragma unroll
                  for (int j = 0; j < kLanes; ++j) {
                    Lane value = policy.combine(left, lanes[j]);
#pragma unroll
                    for (int k = 0; k < kFixed; ++k) {
                      Lane streamed_value = values[k][u][i][j];
                      if constexpr (P::Semiring::scaled) streamed_value *= stream_scale[k];
                      if (k + 1 < kFixed) {
                        value = policy.combine(value, streamed_value);
                      } else {
                        policy.fold(sums[i][j], value, streamed_value);
                      }
                    }
                  }
                }
              }
            }
#pragma unroll
            for (int k = 0; k < kFixed; ++k)
#pragma unroll
              for (int i = 0; i < kRows; ++i) streams[k][i] += stride * stream_stride[k];
          }
        } else {
          for (int d = 0; d < depth; ++d) {
            Lane values[kRows][kLanes];
#pragma unroll
            for (int i = 0; i < kRows; ++i)
#pragma unroll
              for (int j = 0; j < kLanes; ++j)
                values[i][j] = policy.combine(a[d * batch + i], P::splat(b[d * pitch + min(j * columns, cells - 1 - lo)]));
#pragma unroll 2
            for (int k = 0; k < streamed; ++k) {
              const i64 stride = step.table(streams_from + k).domain_stride() * (d_first + d);
#pragma unroll
              for (int i = 0; i < kRows; ++i) {
                const Cell* stream = arena + mids[k * batch + min(top + i, count - 1)] + stride;
#pragma unroll
                for (int j = 0; j < kLanes; ++j) {
                  const Cell cell = part.read(stream + los[k * pitch + min(lo + j * columns, cells - 1)], streams_from + k);
                  values[i][j] = policy.combine(values[i][j], P::splat(cell));
                }
              }
            }
#pragma unroll
            for (int i = 0; i < kRows; ++i)
#pragma unroll
              for (int j = 0; j < kLanes; ++j) policy.fold(sums[i][j], values[i][j], P::splat(policy.one()));
          }
        }
        if (d_first + depth == domain) {
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            if (top + i >= count) continue;
            Cell* out = arena + mids[streamed * batch + top + i] + lo_first + lo;
            Lane results[kLanes];
#pragma unroll
            for (int j = 0; j < kLanes; ++j) results[j] = policy.finish(sums[i][j]);
            if constexpr (kDense) {
              if (layout[kVector] && lo + kCellsThread <= cells) {
                int4 vectors[sizeof(results) / 16];
                memcpy(vectors, results, sizeof(results));
#pragma unroll
                for (int j = 0; j < int(sizeof(results)) / 16; ++j) reinterpret_cast<int4*>(out)[j] = vectors[j];
              } else {
#pragma unroll
                for (int j = 0; j < kCellsThread; ++j) {
                  const Lane lane = results[j / P::width];
                  if (lo + j < cells) out[j] = P::cell(lane, j % P::width);
                }
              }
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
        }
      }
    }
  }
  if constexpr (P::Semiring::scaled) seen.publish(peaks + 2 * layout[kNumber]);
}

}  // namespace elimina
