// Belief propagation in waves: all beliefs of variables, then all messages of factors. Messages are logarithms of at most 0, one for each state
// of a factor's variable; the factors of a class have the same sizes, and the numbers of a class lie factor by factor beside each other.
#include "common.cuh"

namespace elimina {

constexpr double kLeastMessage = 1e-130;
constexpr int kMostAxes = 8;

// Raises a maximum of numbers that are at least 0, once for each warp.
__device__ void raise_to(double* maximum, double value) {
  for (int mask = 16; mask > 0; mask /= 2) value = fmax(value, __shfl_xor_sync(~0u, value, mask));
  if (threadIdx.x % 32 == 0)
    atomicMax(reinterpret_cast<unsigned long long*>(maximum), (unsigned long long)(__double_as_longlong(value)));
}

// A variable's belief is the product of its bias and of the messages that it receives; normalisers are the logarithms of the products' sums.
// `residual` is raised to the largest change of a probability.
__global__ void waves_beliefs(i64 variables, const i32* starts, const double* biases, const i32* edge_starts,
                              const i32* firsts, const i32* strides, const double* messages, const double* before,
                              double* beliefs, double* normalisers, double* residual) {
  double change = 0;
  for (i64 v = i64(blockIdx.x) * blockDim.x + threadIdx.x; v < variables; v += i64(gridDim.x) * blockDim.x) {
    const i32 first = starts[v], last = starts[v + 1];
    double peak = -std::numeric_limits<double>::infinity();
    for (i32 at = first; at < last; ++at) {
      double log = biases[at];
      for (i32 e = edge_starts[v]; e < edge_starts[v + 1]; ++e)
        log += messages[firsts[e] + i64(at - first) * strides[e]];
      beliefs[at] = log;
      peak = fmax(peak, log);
    }
    double total = 0;
    for (i32 at = first; at < last; ++at) total += exp(beliefs[at] - peak);
    const double normaliser = peak + log(total);
    for (i32 at = first; at < last; ++at) {
      beliefs[at] -= normaliser;
      change = fmax(change, fabs(exp(beliefs[at]) - exp(before[at])));
    }
    normalisers[v] = normaliser;
  }
  raise_to(residual, change);
}

// A factor of a class: where its tables, messages and the beliefs of its variables are.
struct WaveFactor {
  i64 count, number;
  int axes;
  const i32* sizes;
  const i32* scopes;  // start of each variable's belief, axis by axis
  const double *tables, *beliefs, *messages;

  __device__ i32 belief(int axis) const { return scopes[i64(axis) * count + number]; }
  __device__ i64 message(i64 offset) const { return offset * count + number; }
  __device__ double table(i64 cell) const { return tables[cell * count + number]; }

  // Logarithm of the product of what an axis's variable receives from others.
  __device__ double cavity(int axis, i64 offset, i32 state) const {
    return beliefs[belief(axis) + state] - messages[message(offset + state)];
  }

  // Sum of the table's cells at one state of an axis (-1: of all cells), times the cavities of the other axes.
  __device__ double sum(int axis, i32 state, const double* peaks) const {
    i64 cells = 1;
    for (int a = 0; a < axes; ++a)
      if (a != axis) cells *= sizes[a];
    double total = 0;
    for (i64 i = 0; i < cells; ++i) {
      i64 rest = i, cell = 0, step = 1, offset = 0;
      double log = 0;
      for (int a = axes - 1; a >= 0; --a) offset += sizes[a];
      for (int a = axes - 1; a >= 0; --a) {
        offset -= sizes[a];
        i32 value = state;
        if (a != axis) {
          value = i32(rest % sizes[a]);
          rest /= sizes[a];
          log += cavity(a, offset, value) - peaks[a];
        }
        cell += step * value;
        step *= sizes[a];
      }
      const double weight = table(cell);
      if (weight > 0) total += weight * exp(log);
    }
    return total;
  }

  __device__ void find_peaks(double* peaks) const {
    i64 offset = 0;
    for (int a = 0; a < axes; ++a) {
      double peak = -std::numeric_limits<double>::infinity();
      for (i32 x = 0; x < sizes[a]; ++x) peak = fmax(peak, cavity(a, offset, x));
      peaks[a] = peak;
      offset += sizes[a];
    }
  }
};

// Messages of a class: sums of each factor's table, times what its other variables receive from others. `damping`: share of the message before.
__global__ void waves_messages(i64 count, i32 axes, const i32* sizes, const i32* scopes, const double* tables,
                               const double* beliefs, const double* before, double* messages, double damping) {
  for (i64 k = i64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += i64(gridDim.x) * blockDim.x) {
    const WaveFactor factor{count, k, axes, sizes, scopes, tables, beliefs, before};
    double peaks[kMostAxes];
    if (axes > 2) factor.find_peaks(peaks);
    i64 offset = 0;
    for (int a = 0; a < axes; ++a) {
      double peak = -std::numeric_limits<double>::infinity();
      for (i32 x = 0; x < sizes[a]; ++x) {
        double sum = 0;
        if (axes == 2) {
          const i64 row = a ? 1 : sizes[1], column = a ? sizes[1] : 1, other = a ? 0 : sizes[0];
          for (i32 y = 0; y < sizes[1 - a]; ++y)
            sum += factor.table(row * x + column * y) * exp(factor.cavity(1 - a, other, y));
        } else {
          sum = factor.sum(a, x, peaks);
        }
        const double message = log(fmax(sum, kLeastMessage));
        messages[factor.message(offset + x)] = message;
        peak = fmax(peak, message);
      }
      for (i32 x = 0; x < sizes[a]; ++x) {
        const i64 at = factor.message(offset + x);
        const double message = fmax(messages[at] - peak, log(kLeastMessage));
        messages[at] = message + damping * (before[at] - message);
      }
      offset += sizes[a];
    }
  }
}

// Logarithm of each factor's sum, of the table times what its variables receive from others.
__global__ void waves_sums(i64 count, i32 axes, const i32* sizes, const i32* scopes, const double* tables,
                           const double* beliefs, const double* messages, double* logs) {
  for (i64 k = i64(blockIdx.x) * blockDim.x + threadIdx.x; k < count; k += i64(gridDim.x) * blockDim.x) {
    const WaveFactor factor{count, k, axes, sizes, scopes, tables, beliefs, messages};
    double peaks[kMostAxes], log_scale = 0;
    factor.find_peaks(peaks);
    for (int a = 0; a < axes; ++a) log_scale += peaks[a];
    logs[k] = log_scale + log(factor.sum(-1, 0, peaks));
  }
}

}  // namespace elimina
