// Decodes assignments from the tables of buckets: each block gives the variables of one assignment their values of least
// cost, in reverse elimination order. The core's exec/bucket_decoding.hpp does the same, in the same sequence of sums.
#include "common.cuh"

namespace elimina {

constexpr int kDecodingThreads = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Decodes the variables in [`begin`, `end`); those from `end` on have values. `words`: the arrays of
// planning/bucket_tables.py, one after another. `noise`: a row of `states` numbers for each block but the first one;
// `end_state`: number of values of all variables below `end`. `costs`: for each block, room for the costs of the
// largest domain.
template <class Value>
__global__ void __launch_bounds__(kDecodingThreads)
    decode_buckets(const Value* __restrict__ arena, const i64* __restrict__ words, i64 variables, i64 tables, i64 axes,
                   i64 begin, i64 end, const double* __restrict__ noise, i64 states, i64 end_state, double* costs,
                   i64 largest, double sign, Value forbidden, i32* assignments) {
  __shared__ i64 cells[kDecodingThreads], steps[kDecodingThreads];
  __shared__ double best_costs[kDecodingThreads];
  __shared__ i64 best_values[kDecodingThreads];
  const i64* sizes = words;
  const i64* table_starts = sizes + variables;
  const i64* offsets = table_starts + variables + 1;
  const i64* strides = offsets + tables;
  const i64* axis_starts = strides + tables;
  const i64* axis_variables = axis_starts + tables + 1;
  const i64* axis_strides = axis_variables + axes;
  const int thread = int(threadIdx.x);
  volatile i32* assignment = assignments + i64(blockIdx.x) * variables;
  costs += i64(blockIdx.x) * largest;
  i64 first_state = end_state;
  for (i64 v = end - 1; v >= begin; --v) {
    const i64 size = sizes[v], last_table = table_starts[v + 1];
    first_state -= size;
    for (i64 x = thread; x < size; x += kDecodingThreads)
      costs[x] = blockIdx.x == 0 ? 0.0 : -noise[i64(blockIdx.x - 1) * states + first_state + x];
    for (i64 first_table = table_starts[v]; first_table < last_table; first_table += kDecodingThreads) {
      const i64 table = first_table + thread;
      __syncthreads();
      if (table < last_table) {
        i64 cell = offsets[table];
        for (i64 axis = axis_starts[table]; axis < axis_starts[table + 1]; ++axis)
          cell += assignment[axis_variables[axis]] * axis_strides[axis];
        cells[thread] = cell;
        steps[thread] = strides[table];
      }
      __syncthreads();
      const int count = int(min(last_table - first_table, i64(kDecodingThreads)));
      for (i64 x = thread; x < size; x += kDecodingThreads) {
        double cost = costs[x];
        for (int t = 0; t < count; ++t) {
          const Value cell = arena[cells[t] + x * steps[t]];
          cost += cell == forbidden ? kInfinity : sign * double(cell);
        }
        costs[x] = cost;
      }
    }
    // The first one of equally good values is taken.
    double best_cost = kInfinity;
    i64 best = size;
    for (i64 x = thread; x < size; x += kDecodingThreads)
      if (best == size || costs[x] < best_cost) best = x, best_cost = costs[x];
    best_costs[thread] = best_cost;
    best_values[thread] = best;
    __syncthreads();
    if (thread == 0) {
      for (int other = 1; other < kDecodingThreads; ++other) {
        const i64 value = best_values[other];
        if (value == size) continue;
        if (best_costs[other] < best_cost || (best_costs[other] == best_cost && value < best))
          best = value, best_cost = best_costs[other];
      }
      assignment[v] = i32(best);
      __threadfence_block();
    }
    __syncthreads();
  }
}

}  // namespace elimina
