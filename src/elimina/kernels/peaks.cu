// Resets the output ranges of the steps of a run.
#include "common.cuh"

namespace elimina {

__global__ void peaks(const i64* words, i64 sequence_at, i64 count, u64* peaks) {
  const i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const i64 step = words[sequence_at + i];
  peaks[2 * step] = 0;
  peaks[2 * step + 1] = u64(__double_as_longlong(std::numeric_limits<double>::infinity()));
}

}  // namespace elimina
