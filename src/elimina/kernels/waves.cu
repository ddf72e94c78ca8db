// Belief propagation in waves: all beliefs of variables, then all messages of factors. Messages are logarithms of at
// most 0, one for each state of a factor's variable. The factors of a class have the same sizes, and their values of one
// cell are next to each other.
#include "common.cuh"

namespace elimina {

constexpr double kLeastMessage = 1e-130, kLeastLog = -299.33606208922593;

#ifndef ELIMINA_ROOM
#define ELIMINA_ROOM(name) extern __shared__ double name[]
#endif

// Calls `use(i, load(i))` for 0 <= i < `count`. Several numbers are loaded before the first of them is used, because
// `use` may write memory, after which the compiler puts all later loads.
template <class Load, class Use>
__device__ void for_loaded(i32 count, Load load, Use use) {
  constexpr i32 together = 4;
  i32 first = 0;
  for (; first + together <= count; first += together) {
    double values[together];
#pragma unroll
    for (i32 i = 0; i < together; ++i) values[i] = load(first + i);
#pragma unroll
    for (i32 i = 0; i < together; ++i) use(first + i, values[i]);
  }
  for (; first < count; ++first) use(first, load(first));
}

// Raises `*maximum` to the largest value of the calling threads, by one atomic operation a warp. All numbers must be at
// least 0, as their bits are compared.
__device__ void raise_to(double* maximum, double value) {
  for (int mask = 16; mask > 0; mask /= 2) value = fmax(value, exchange_lanes(value, mask));
  if (threadIdx.x % 32 == 0)
    atomicMax(reinterpret_cast<unsigned long long*>(maximum), (unsigned long long)(__double_as_longlong(value)));
}

// A variable's belief is the product of its bias and of the messages that it receives; normalisers are the logarithms of
// the products' sums. The `count` variables of a launch have `size` states each; their numbers for one state are next to
// each other. `residual` is raised to the largest change of a probability.
__global__ void waves_beliefs(i64 count, i32 size, const double* __restrict__ biases,
                              const i32* __restrict__ edge_starts, const i32* __restrict__ firsts,
                              const i32* __restrict__ strides, const double* __restrict__ messages,
                              const double* __restrict__ before, double* __restrict__ beliefs,
                              double* __restrict__ normalisers, double* residual) {
  double change = 0;
  for (i64 v = i64(blockIdx.x) * blockDim.x + threadIdx.x; v < count; v += i64(gridDim.x) * blockDim.x) {
    const i32 begin = edge_starts[v], end = edge_starts[v + 1];
    const i64 last = v + size * count;
    double peak = -std::numeric_limits<double>::infinity();
    i64 at = v;
#pragma unroll 4
    for (i32 x = 0; x < size; ++x, at += count) {
      double log = biases[at];
      for (i32 e = begin; e < end; ++e) log += messages[firsts[e] + i64(x) * strides[e]];
      beliefs[at] = log;
      peak = fmax(peak, log);
    }
    double total = 0;
    for (at = v; at < last; at += count) total += exp(beliefs[at] - peak);
    const double normaliser = peak + log(total);
#pragma unroll 4
    for (at = v; at < last; at += count) {
      const double belief = beliefs[at] - normaliser;
      beliefs[at] = belief;
      change = fmax(change, fabs(exp(belief) - exp(before[at])));
    }
    normalisers[v] = normaliser;
  }
  raise_to(residual, change);
}

// A factor of a class: pointers to its tables, messages and beliefs, and room in shared memory.
struct WaveFactor {
  i64 count, number;
  int axes;
  const i32* sizes;
  const i32* scopes;          // position of each variable's belief in its first state, axis by axis
  const i32* belief_strides;  // for each axis, the distance between a belief's states
  const double *tables, *beliefs, *messages;
  double* room;
  i32 step;

  __device__ i64 at(i64 offset) const { return offset * count + number; }
  __device__ double& room_at(i64 slot) const { return room[slot * step]; }

  // Writes, for each axis, the product of the bias of the axis's variable and of the messages from the variable's other
  // factors, divided by the product's largest value; returns the logarithm of the product of these largest values.
  __device__ double set_cavities() const {
    double log_scale = 0;
    i64 offset = 0;
    for (int a = 0; a < axes; ++a) {
      const double* belief = beliefs + scopes[at(a)];
      double peak = -std::numeric_limits<double>::infinity();
      for_loaded(
          sizes[a], [&](i32 x) { return belief[i64(x) * belief_strides[a]] - messages[at(offset + x)]; },
          [&](i32 x, double log) {
            room_at(offset + x) = log;
            peak = fmax(peak, log);
          });
      for (i32 x = 0; x < sizes[a]; ++x) room_at(offset + x) = exp(room_at(offset + x) - peak);
      log_scale += peak;
      offset += sizes[a];
    }
    return log_scale;
  }

  // Sum of the table's cells at one state of an axis (-1: of all cells), each times the messages to the other axes.
  __device__ double sum(int axis, i32 state) const {
    i32 cells = 1, last = 0;
    for (int a = 0; a < axes; ++a) {
      last += sizes[a];
      if (a != axis) cells *= sizes[a];
    }
    double total = 0;
    for (i32 i = 0; i < cells; ++i) {
      i32 rest = i, cell = 0, stride = 1, offset = last;
      double weight = 1;
      for (int a = axes - 1; a >= 0; --a) {
        offset -= sizes[a];
        i32 value = state;
        if (a != axis) {
          value = rest % sizes[a];
          rest /= sizes[a];
          weight *= room_at(offset + value);
        }
        cell += stride * value;
        stride *= sizes[a];
      }
      total += weight * tables[at(cell)];
    }
    return total;
  }

  // The table has two axes. Replaces the messages to the rows by the rows' sums, each cell times the message to its
  // column, and writes the columns' sums behind the messages to the columns. Each cell is read once, kSide x kSide
  // cells at a time. `kWhole`: true if both sizes are multiples of kSide.
  template <i32 kSide, bool kWhole>
  __device__ void sum_rows_and_columns() const {
    const i32 rows = sizes[0], columns = sizes[1];
    double* const row_room = room;
    double* const column_room = room + rows * step;
    double* const sum_room = column_room + columns * step;
    for (i32 y = 0; y < columns; ++y) sum_room[y * step] = 0;
    const i64 row_stride = columns * count;
    for (i32 top = 0; top < rows; top += kSide) {
      const i32 height = kWhole ? kSide : min(kSide, rows - top);
      double received[kSide], totals[kSide];
#pragma unroll
      for (i32 i = 0; i < kSide; ++i) {
        received[i] = i < height ? row_room[(top + i) * step] : 0;
        totals[i] = 0;
      }
      const double* corner = tables + top * row_stride + number;
      for (i32 left = 0; left < columns; left += kSide, corner += kSide * count) {
        const i32 width = kWhole ? kSide : min(kSide, columns - left);
        double cells[kSide][kSide];
        const double* row = corner;
#pragma unroll
        for (i32 i = 0; i < kSide; ++i, row += row_stride) {
          const double* cell = row;
#pragma unroll
          for (i32 j = 0; j < kSide; ++j, cell += count) cells[i][j] = i < height && j < width ? *cell : 0;
        }
#pragma unroll
        for (i32 j = 0; j < kSide; ++j) {
          if (j >= width) continue;
          const double weight = column_room[(left + j) * step];
          double sum = sum_room[(left + j) * step];
#pragma unroll
          for (i32 i = 0; i < kSide; ++i) {
            totals[i] += cells[i][j] * weight;
            sum += cells[i][j] * received[i];
          }
          sum_room[(left + j) * step] = sum;
        }
      }
#pragma unroll
      for (i32 i = 0; i < kSide; ++i)
        if (i < height) row_room[(top + i) * step] = totals[i];
    }
  }
};

// Replaces the message to an axis by the logarithms of `sums`, relative to the largest sum. The new message is damped: it
// keeps a share `damping` of the old one.
template <class Sums>
__device__ void send(const WaveFactor& factor, double* messages, int axis, i64 offset, double damping, Sums sums) {
  double peak = 0;
  for (i32 x = 0; x < factor.sizes[axis]; ++x) peak = fmax(peak, sums(x));
  const double log_peak = log(fmax(peak, kLeastMessage));
  for_loaded(
      factor.sizes[axis], [&](i32 x) { return messages[factor.at(offset + x)]; },
      [&](i32 x, double old) {
        const double message = fmax(log(fmax(sums(x), kLeastMessage)) - log_peak, kLeastLog);
        messages[factor.at(offset + x)] = message + damping * (old - message);
      });
}

// Messages of a class: sums of each factor's table times the messages to its other variables. `damping`: share of the old
// message.
__global__ void waves_messages(i64 count, i32 axes, const i32* sizes, const i32* scopes, const i32* belief_strides,
                               const double* tables, const double* beliefs, double* messages, const double* damping) {
  ELIMINA_ROOM(room);
  const double share = *damping;
  for (i64 k = i64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += i64(gridDim.x) * blockDim.x) {
    const WaveFactor factor{
        count, k, axes, sizes, scopes, belief_strides, tables, beliefs, messages, room + threadIdx.x, i32(blockDim.x)};
    factor.set_cavities();
    if (axes == 2) {
      const i32 rows = sizes[0], columns = sizes[1];
      if (rows % 4 == 0 && columns % 4 == 0) factor.sum_rows_and_columns<4, true>();
      else if (rows == 2 && columns == 2) factor.sum_rows_and_columns<2, true>();
      else factor.sum_rows_and_columns<4, false>();
      send(factor, messages, 0, 0, share, [&](i32 x) { return factor.room_at(x); });
      send(factor, messages, 1, rows, share, [&](i32 y) { return factor.room_at(rows + columns + y); });
      continue;
    }
    i32 offset = 0, last = 0;
    for (int a = 0; a < axes; ++a) last += sizes[a];
    for (int a = 0; a < axes; ++a) {
      for (i32 x = 0; x < sizes[a]; ++x) factor.room_at(last + x) = factor.sum(a, x);
      send(factor, messages, a, offset, share, [&](i32 x) { return factor.room_at(last + x); });
      offset += sizes[a];
    }
  }
}

// Logarithm of each factor's sum: of its table times the messages to its variables.
__global__ void waves_sums(i64 count, i32 axes, const i32* sizes, const i32* scopes, const i32* belief_strides,
                           const double* tables, const double* beliefs, const double* messages, double* logs) {
  ELIMINA_ROOM(room);
  for (i64 k = i64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += i64(gridDim.x) * blockDim.x) {
    const WaveFactor factor{
        count, k, axes, sizes, scopes, belief_strides, tables, beliefs, messages, room + threadIdx.x, i32(blockDim.x)};
    const double log_scale = factor.set_cavities();
    logs[k] = log_scale + log(factor.sum(-1, 0));
  }
}

}  // namespace elimina
