// Copies rows of cells to rows of another pitch, possibly of another type; cells at or above a limit become forbidden.
#include "common.cuh"

namespace elimina {

template <class From, class To, bool bounded>
__global__ void place(const From* from, i64 from_pitch, To* to, i64 to_pitch, i64 rows, i64 columns, From limit, To forbidden) {
  for (i64 row = blockIdx.y; row < rows; row += gridDim.y)
    for (i64 column = i64(blockIdx.x) * blockDim.x + threadIdx.x; column < columns; column += i64(gridDim.x) * blockDim.x) {
      const From cell = from[row * from_pitch + column];
      to[row * to_pitch + column] = bounded && !(cell < limit) ? forbidden : To(cell);
    }
}

}  // namespace elimina
