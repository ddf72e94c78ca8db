// One large moment-matching step in one launch: a thread takes kLanes neighbouring cells at a time. Rows are the trailing axes from `row_axis`
// on, which follow each other in every table and in the output; where kLanes > 1 they all start at words of 16 bytes.
#include "matching.cuh"
#include "tile_parts.cuh"

namespace elimina {

template <class S, int kTables, int kLanes>
__global__ void __launch_bounds__(kThreads)
    matching(const i64* __restrict__ record, int row_axis, typename S::Value* arena, u64*, const i32* stop, typename S::Value parameter) {
  using Value = typename S::Value;
  if (stopped(stop)) return;
  const StepView step{record};
  const S s = semiring_of<S>(parameter, step);
  const int mini_bucket = int(step[kTablesA]);
  i64 row_cells = 1;
  for (i64 axis = row_axis; axis < step[kAxes]; ++axis) row_cells *= step.size(axis);
  const u64 words = u64(row_cells + kLanes - 1) / kLanes, all = words * u64(step.cells() / row_cells);
  for (u64 word = u64(blockIdx.x) * kThreads + threadIdx.x; word < all; word += u64(gridDim.x) * kThreads) {
    u64 row = all >> 32 ? divide_long(word, words) : u64(u32(word) / u32(words));
    const i64 cell = i64(word - row * words) * kLanes;
    i64 index[kTables], out = step[kOut] + cell;
#pragma unroll
    for (int t = 0; t < kTables; ++t) index[t] = step.table(t).offset() + cell;
#pragma unroll 1
    for (int axis = row_axis - 1; axis >= 0; --axis) {
      const u64 size = u64(step.size(axis)), rest = row >> 32 ? divide_long(row, size) : u64(u32(row) / u32(size));
      const i64 digit = i64(row - rest * size);
#pragma unroll
      for (int t = 0; t < kTables; ++t) index[t] += digit * step.table(t).stride(axis);
      out += digit * step.out_stride(axis);
      row = rest;
    }
    Value tables[kTables][kLanes], results[kLanes];
#pragma unroll
    for (int t = 0; t < kTables; ++t) {
      if constexpr (kLanes > 1) {
        copy_words(tables[t], arena + index[t]);
      } else {
        tables[t][0] = arena[index[t]];
      }
    }
#pragma unroll
    for (int lane = 0; lane < kLanes; ++lane) {
      Value values[kTables];
#pragma unroll
      for (int t = 0; t < kTables; ++t) values[t] = tables[t][lane];
      results[lane] = matched(s, values, mini_bucket, kTables);
    }
    if constexpr (kLanes > 1) {
      store_cells<Single<S>>(arena + out, results, int(min(row_cells - cell, i64(kLanes))), 16);
    } else {
      arena[out] = results[0];
    }
  }
}

}  // namespace elimina
