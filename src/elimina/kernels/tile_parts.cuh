// Preparation of a block of the kernels for large steps (tile.cu, product.cu, faces.cu): layout of shared memory, offsets, lhs
// and rhs.
#pragma once
#include "common.cuh"

namespace elimina {

// Layout of cells in a thread's registers. Single: one cell a register.
template <class S, class Stored = typename S::Value>
struct Single {
  using Semiring = S;
  using Cell = Stored;
  using Lane = typename S::Value;
  using Sum = typename S::Sum;
  static constexpr int width = 1;
  S s;
  __device__ explicit Single(Cell parameter) : s(semiring_of<S>(Lane(parameter))) {}
  __device__ Single(Cell parameter, StepView step) : s(semiring_of<S>(Lane(parameter), step)) {}
  // one() of the integers in registers may be less than the least number that a stored cell can hold.
  __device__ Cell one() const {
    const Lane unit = s.one();
    if constexpr (is_integer<Lane> && sizeof(Cell) < sizeof(Lane)) {
      constexpr Lane least = -(Lane(1) << (8 * sizeof(Cell) - 1));
      return Cell(unit < least ? least : unit);
    }
    return Cell(unit);
  }
  __device__ Cell combine_cells(Cell a, Cell b) const { return Cell(s.combine(Lane(a), Lane(b))); }
  static __device__ Lane splat(Cell cell) { return Lane(cell); }
  static __device__ Lane spread(Lane lane, int) { return lane; }
  static __device__ Cell cell(Lane lane, int = 0) { return Cell(lane); }
  __device__ Lane combine(Lane a, Lane b) const { return s.combine(a, b); }
  __device__ Sum start() const { return s.start(); }
  __device__ void fold(Sum& sum, Lane a, Lane b) const { elimina::fold(s, sum, a, b); }
  __device__ Lane finish(Sum sum) const { return s.finish(sum); }
};

// Pairs: two 16-bit cells a register, joined and compared in one instruction or two; the planner proved that no sum leaves 16 bits.
template <class S>
struct Pairs {
  using Semiring = S;
  using Cell = i16;
  using Lane = u32;
  using Sum = u32;
  static constexpr int width = 2;
  S s;
  __device__ explicit Pairs(i16 parameter) : s(semiring_of<S>(parameter)) {}
  __device__ Pairs(i16 parameter, StepView) : s(semiring_of<S>(parameter)) {}
  __device__ Cell one() const { return s.one(); }
  __device__ Cell combine_cells(Cell a, Cell b) const { return s.combine(a, b); }
  static __device__ Lane splat(Cell cell) { return u32(static_cast<unsigned short>(cell)) * 0x10001u; }
  static __device__ Lane spread(Lane lane, int half) { return __byte_perm(lane, 0, half ? 0x3232 : 0x1010); }
  static __device__ Cell cell(Lane lane, int half = 0) { return Cell(lane >> 16 * half & 0xffffu); }
  __device__ Lane combine(Lane a, Lane b) const {
    if constexpr (same<S, MinSum<i16>>)
      return sum_of_pairs(a, b);
    else
      return join(s.combine(cell(a, 0), cell(b, 0)), s.combine(cell(a, 1), cell(b, 1)));
  }
  __device__ Sum start() const { return splat(s.start()); }
  __device__ void fold(Sum& sum, Lane a, Lane b) const {
    if constexpr (same<S, MinSum<i16>>) {
      sum = min_of_pairs_sum(a, b, sum);
    } else {
      const Lane value = combine(a, b);
      Cell low = cell(sum, 0), high = cell(sum, 1);
      s.add(low, cell(value, 0));
      s.add(high, cell(value, 1));
      sum = join(low, high);
    }
  }
  __device__ Lane finish(Sum sum) const { return sum; }

 private:
  static __device__ Lane join(Cell low, Cell high) { return u32(static_cast<unsigned short>(low)) | u32(static_cast<unsigned short>(high)) << 16; }
};

// Not inlined: it takes hundreds of instructions and is rarely called.
__device__ __noinline__ u64 divide_long(u64 a, u64 b) { return a / b; }

// Sum of each digit of a cell number times the stride of its axis; the remainder is the digit of the slowest axis.
template <class Stride>
__device__ __forceinline__ i64 offset_of(StepView step, u64 cell, int first, int last, Stride stride) {
  i64 offset = 0;
#pragma unroll 1
  for (int axis = last - 1; axis > first; --axis) {
    const u64 size = u64(step.size(axis));
    const u64 rest = cell >> 32 ? divide_long(cell, size) : u64(u32(cell) / u32(size));
    offset += i64(cell - rest * size) * stride(axis);
    cell = rest;
  }
  return first < last ? offset + i64(cell) * stride(first) : 0;
}

// Copies an array in 16-byte words.
template <class To, class From>
__device__ __forceinline__ void copy_words(To& to, const From* from) {
  static_assert(sizeof(To) % 16 == 0);
  int4 words[sizeof(To) / 16];
#pragma unroll
  for (int j = 0; j < int(sizeof(To)) / 16; ++j) words[j] = reinterpret_cast<const int4*>(from)[j];
  memcpy(to, words, sizeof(To));
}

template <class Word, class Lanes, class Cell>
__device__ __forceinline__ void store_words(Cell* to, const Lanes& lanes) {
  Word words[sizeof(lanes) / sizeof(Word)];
  memcpy(words, lanes, sizeof(lanes));
#pragma unroll
  for (int j = 0; j < int(sizeof(lanes) / sizeof(Word)); ++j) reinterpret_cast<Word*>(to)[j] = words[j];
}

// Writes at most `cells` cells, in words of `vector` bytes if all lanes are written.
template <class P, class Lanes>
__device__ __forceinline__ void store_cells(typename P::Cell* out, const Lanes& lanes, int cells, int vector) {
  constexpr int kCells = int(sizeof(lanes) / sizeof(typename P::Lane)) * P::width;
  if (cells >= kCells && vector == 16) {
    store_words<int4>(out, lanes);
  } else if (cells >= kCells && vector == 8) {
    store_words<int2>(out, lanes);
  } else if (cells >= kCells && vector == 4) {
    store_words<int>(out, lanes);
  } else {
#pragma unroll
    for (int j = 0; j < kCells; ++j)
      if (j < cells) out[j] = P::cell(lanes[j / P::width], j % P::width);
  }
}

constexpr int kAhead = 8;  // values of d whose loads are in flight together while lhs and rhs are built

// Offsets in shared memory, in bytes; backends/cuda/stream_blocks.py, product_blocks.py and faces_blocks.py compute the
// same offsets.
struct Map {
  int bases;   // offsets at the block's slow cells: [slow cell][tables, then the output]
  int scales;  // scale of each table
  int mids;    // offsets of the middle cells of a batch: [streamed tables, then the output][batch]
  int los;     // offsets of the fast cells, for any number of streamed tables: [streamed][pitch]
  int a, b;    // lhs [slow cell][d][batch], rhs [slow cell][d][pitch]
  int ring;    // streamed values that are being loaded
};

template <class P>
__device__ __forceinline__ Map map_of(int record_words, int tables, int streamed, int batch, int slab, int pitch, int los,
                                      int outers = 1) {
  Map map;
  map.bases = 8 * ((record_words + 1) / 2 * 2);
  map.scales = map.bases + 8 * outers * (tables + 1);
  map.mids = map.scales + 8 * tables;
  map.los = map.mids + 8 * (streamed + 1) * batch;
  map.a = (map.los + 4 * los + 15) / 16 * 16;
  map.b = (map.a + outers * slab * batch * int(sizeof(typename P::Lane)) + 15) / 16 * 16;
  map.ring = (map.b + outers * slab * pitch * int(sizeof(typename P::Cell)) + 15) / 16 * 16;
  return map;
}

// Shared memory starts with the step's record. Addresses are always this array plus an offset, so that the compiler
// knows that they lie in shared memory.
extern __shared__ __align__(16) i64 shared[];

template <class T>
__device__ __forceinline__ T* at(int bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<unsigned char*>(shared) + bytes);
}

// Functions that prepare a block are not inlined, so that they take no registers from the inner loops. Their loops are
// not unrolled: the speed of code that runs once is limited by the fetching of its instructions.

// Loads the record, and finds the offsets and scales of the tables. Returns false if the run is stopped, which it checks while
// the record is loaded.
template <class P>
__device__ __noinline__ bool prepare(const i64* record, int record_words, u64 outer, const u64* peaks, const i32* stop, int bases_at,
                                     int scales_at, int outers = 1) {
  const bool stops = stopped(stop);
#pragma unroll 1
  for (int i = threadIdx.x; i < record_words; i += int(blockDim.x)) shared[i] = record[i];
  if (__syncthreads_or(stops)) return false;
  const StepView step{shared};
  const int tables = int(step[kTables]);
#pragma unroll 1
  for (int i = threadIdx.x; i < outers * (tables + 1); i += int(blockDim.x)) {
    const int number = i % (tables + 1);
    const bool output = number == tables;
    const TableView table = step.table(output ? 0 : number);
    at<i64>(bases_at)[i] = (output ? step[kOut] : table.offset()) +
                           offset_of(step, outer + i / (tables + 1), 0, step[kOuterAxes],
                                     [&](i64 axis) { return output ? step.out_stride(axis) : table.stride(axis); });
    if (i < tables) {
      at<typename P::Semiring::Value>(scales_at)[number] = scale_of<typename P::Semiring>(table, peaks);
    }
  }
  __syncthreads();
  return true;
}

// Offsets of the middle cells [first, first + count) in the streamed tables and in the output.
__device__ __noinline__ void locate(u64 first, int count, int batch, int streamed, int bases_at, int mids_at) {
  const StepView step{shared};
  const int tables = int(step[kTables]);
#pragma unroll 1
  for (int i = threadIdx.x; i < (streamed + 1) * count; i += int(blockDim.x)) {
    const int number = i / count, mid = i % count;
    const bool output = number == streamed;
    const TableView table = step.table(output ? 0 : tables - streamed + number);
    at<i64>(mids_at)[number * batch + mid] =
        at<i64>(bases_at)[output ? tables : tables - streamed + number] +
        offset_of(step, first + mid, step[kOuterAxes], step.lo_axis(),
                  [&](i64 axis) { return output ? step.out_stride(axis) : table.stride(axis); });
  }
}

// Writes the offsets of the fast cells [first, first + count) within each of the tables [first_table, last_table), as
// [table][pitch]. The offsets of the tables themselves are not included.
template <class Offset>
__device__ __forceinline__ void locate_lo(u64 first, int count, int pitch, int first_table, int last_table, int los_at) {
  const StepView step{shared};
#pragma unroll 1
  for (int i = threadIdx.x; i < (last_table - first_table) * count; i += int(blockDim.x)) {
    const TableView table = step.table(first_table + i / count);
    at<Offset>(los_at)[i / count * pitch + i % count] = Offset(
        offset_of(step, first + i % count, step.lo_axis(), step[kAxes], [&](i64 axis) { return table.stride(axis); }));
  }
}

// A value of a table, scaled for its reader.
template <class P>
__device__ __forceinline__ typename P::Cell read(const typename P::Cell* cell, int number, int scales_at) {
  if constexpr (P::Semiring::scaled) {
    return __ldg(cell) * at<typename P::Semiring::Value>(scales_at)[number];
  } else {
    return __ldg(cell);
  }
}

template <class P, class Slot>
__device__ __forceinline__ Slot to_slot(typename P::Cell value) {
  if constexpr (same<Slot, typename P::Cell>) {
    return value;
  } else {
    return P::splat(value);
  }
}
template <class P, class Slot>
__device__ __forceinline__ typename P::Cell of_slot(Slot slot) {
  if constexpr (same<Slot, typename P::Cell>) {
    return slot;
  } else {
    return P::cell(slot);
  }
}

// slots[slow cell][d - d_first][i] = product of the tables [first, last) at cell number cell_first + i of the axes [axis_first,
// axis_last), for `outers` slow cells, kOuters at most.
template <class P, class Slot, int kOuters = 1>
__device__ __noinline__ void build(int slots_at, int pitch, int count, u64 cell_first, int axis_first, int axis_last, int first,
                                   int last, i64 d_first, int depth, const typename P::Cell* arena, Map map, P policy,
                                   int outers = 1) {
  constexpr int kFlight = kAhead / kOuters;  // values of d whose loads are in flight together
  using Cell = typename P::Cell;
  const StepView step{shared};
  Slot* slots = at<Slot>(slots_at);
  const int threads = int(blockDim.x), groups = count < threads ? threads / count : 1;
  const int group = count < threads ? int(threadIdx.x) / count : 0;
  if (group >= groups) return;
#pragma unroll 1
  for (int i = count < threads ? int(threadIdx.x) % count : int(threadIdx.x); i < count; i += threads) {
    if (first == last) {
#pragma unroll 1
      for (int d = group; d < outers * depth; d += groups) slots[d * pitch + i] = to_slot<P, Slot>(policy.one());
    }
#pragma unroll 1
    for (int number = first; number < last; number += 2) {
      const bool two = number + 1 < last;
      const auto start = [&](int table_number) {
        const TableView table = step.table(table_number);
        return arena + (d_first + group) * table.domain_stride() +
               offset_of(step, cell_first + i, axis_first, axis_last, [&](i64 axis) { return table.stride(axis); });
      };
      const int other_number = two ? number + 1 : number;
      const Cell *cells[kOuters], *other_cells[kOuters];
      cells[0] = start(number);
      other_cells[0] = two ? start(other_number) : cells[0];
#pragma unroll
      for (int outer = kOuters; outer-- > 0;) {
        const i64* bases = at<i64>(map.bases) + min(outer, outers - 1) * int(step[kTables] + 1);
        cells[outer] = cells[0] + bases[number];
        other_cells[outer] = other_cells[0] + bases[other_number];
      }
      const i64 stride = step.table(number).domain_stride() * groups;
      const i64 other_stride = step.table(other_number).domain_stride() * groups;
      Slot* slot = slots + group * pitch + i;
#pragma unroll 1
      for (int d = group; d < depth; d += kFlight * groups) {
        Cell values[kOuters][kFlight], others[kOuters][kFlight];
#pragma unroll
        for (int outer = 0; outer < kOuters; ++outer) {
#pragma unroll
          for (int u = 0; u < kFlight; ++u) {
            if (d + u * groups < depth && outer < outers) {
              values[outer][u] = read<P>(cells[outer], number, map.scales);
              if (two) others[outer][u] = read<P>(other_cells[outer], other_number, map.scales);
            }
            cells[outer] += stride;
            other_cells[outer] += other_stride;
          }
        }
#pragma unroll
        for (int u = 0; u < kFlight; ++u) {
#pragma unroll
          for (int outer = 0; outer < kOuters; ++outer) {
            if (d + u * groups < depth && outer < outers) {
              Slot& target = slot[outer * depth * pitch];
              Cell value = number == first ? values[outer][u] : policy.combine_cells(of_slot<P, Slot>(target), values[outer][u]);
              if (two) value = policy.combine_cells(value, others[outer][u]);
              target = to_slot<P, Slot>(value);
            }
          }
          slot += groups * pitch;
        }
      }
    }
  }
}

}  // namespace elimina
