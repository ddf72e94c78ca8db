// Decodes assignments from the tables of buckets: each block gives the variables of one assignment their values of least
// cost, in reverse elimination order. A value's cost is the sum of its cells in the bucket's tables, minus noise.
#include "common.cuh"

namespace elimina {

constexpr int kDecodingThreads = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// `words`: the arrays of planning/bucket_tables.py, one after another. `noise`: a row of `states` numbers for each block
// but the first one.
// `costs`: for each block, room for the costs of the largest domain.
template <class Value>
__global__ void __launch_bounds__(kDecodingThreads)
    decode_buckets(const Value* __restrict__ arena, const i64* __restrict__ words, i64 variables, i64 tables, i64 axes,
                   const double* __restrict__ noise, i64 states, double* costs, i64 largest, double sign,
                   Value forbidden, i32* assignments) {
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
  i64 first_state = states;
  for (i64 v = variables - 1; v >= 0; --v) {
    const i64 size = sizes[v], end = table_starts[v + 1];
    first_state -= size;
    for (i64 x = thread; x < size; x += kDecodingThreads)
      costs[x] = blockIdx.x == 0 ? 0.0 : -noise[i64(blockIdx.x - 1) * states + first_state + x];
    for (i64 begin = table_starts[v]; begin < end; begin += kDecodingThreads) {
      const i64 table = begin + thread;
      __syncthreads();
      if (table < end) {
        i64 cell = offsets[table];
        for (i64 axis = axis_starts[table]; axis < axis_starts[table + 1]; ++axis)
          cell += assignment[axis_variables[axis]] * axis_strides[axis];
        cells[thread] = cell;
        steps[thread] = strides[table];
      }
      __syncthreads();
      const int count = int(min(end - begin, i64(kDecodingThreads)));
      for (i64 x = thread; x < size; x += kDecodingThreads) {
        double cost = costs[x];
        for (int t = 0; t < count; ++t) {
          const Value cell = arena[cells[t] + x * steps[t]];
          cost += cell == forbidden ? kInfinity : sign * double(cell);
        }
        costs[x] = cost;
      }
    }
    // The first one of equally good values is taken, as on the host.
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
