// AllDifferent's filtering (include/elimina/different.hpp). Changes are written first, then subsets are divided. A team of
// blocks divides one subset, or a single block divides several, one after another; the state of a division (board) is in
// shared memory. Blocks wait for each other, so all have to be resident.
#include <elimina/different.hpp>

#include "intrinsics.cuh"

namespace elimina {

using different::Call;

struct BlockTeam {
  u32 rank, blocks, mask;
  i32 lanes_;
  u32* barrier;
  u32 generation = 0;

  __device__ BlockTeam(u32 rank, u32 blocks, u32* barrier, u32 words) : rank(rank), blocks(blocks), lanes_(32), barrier(barrier) {
    while (lanes_ > 1 && u32(lanes_) / 2 >= words) lanes_ /= 2;
    mask = (lanes_ == 32 ? ~0u : (1u << lanes_) - 1) << (threadIdx.x % 32 / u32(lanes_) * u32(lanes_));
  }

  __device__ i32 thread() const { return i32(rank * blockDim.x + threadIdx.x); }
  __device__ i32 threads() const { return i32(blocks * blockDim.x); }
  __device__ i32 lanes() const { return lanes_; }
  __device__ i32 lane() const { return i32(threadIdx.x) % lanes_; }
  __device__ i32 group() const { return thread() / lanes_; }
  __device__ i32 groups() const { return threads() / lanes_; }
  __device__ bool any(bool x) const { return any_lane(mask, x); }

  template <class T>
  __device__ T load(const T* at) const {
    return *const_cast<const volatile T*>(at);
  }
  __device__ u64 unite(u64* at, u64 bits) const { return atomicOr(at, bits); }
  template <class T>
  __device__ void raise(T* at, T value) const {
    atomicMax(at, value);
  }
  __device__ void add(u32* at, u32 count) const { atomicAdd(at, count); }
  __device__ u32 next_index(u32* at) const { return atomicAdd(at, 1u); }
  __device__ void publish() const { __threadfence_system(); }

  __device__ void sync() {
    __syncthreads();
    if (blocks == 1) return;
    ++generation;
    if (threadIdx.x == 0) meet(barrier, generation * blocks);
    __syncthreads();
  }

  // Waits until `count` blocks have arrived; afterwards, the writes of these blocks are visible. The counter and
  // `count` may wrap around.
  static __device__ void meet(u32* barrier, u32 count) {
    __threadfence();
    atomicAdd(barrier, 1u);
    while (i32(*const_cast<volatile u32*>(barrier) - count) < 0) {}
    __threadfence();
  }
};

__global__ void __launch_bounds__(512) divide(Call c) {
  extern __shared__ u64 board[];
  different::Update(c, u64(blockIdx.x) * blockDim.x + threadIdx.x, u64(gridDim.x) * blockDim.x).run();
  __syncthreads();
  if (gridDim.x > 1) {
    if (threadIdx.x == 0) BlockTeam::meet(c.arrived, c.arrivals + gridDim.x);
    __syncthreads();
  }
  const u32 teams = gridDim.x / c.blocks;
  for (u32 p = blockIdx.x / c.blocks; p < c.subset_count; p += teams) {
    const different::Subset subset = c.subsets[p];
    BlockTeam team(blockIdx.x % c.blocks, c.blocks, c.barriers + p, subset.words);
    different::Division<BlockTeam>(team, c, subset, c.blocks == 1 ? board : c.scratch + subset.board, c.scratch + subset.rows).run(c.answers + p);
    if (team.thread() == 0) {
      __threadfence_system();
      const u32 before = c.arrivals + (gridDim.x > 1 ? gridDim.x : 0);
      if (atomicAdd(c.arrived, 1u) + 1 == before + c.subset_count) *const_cast<volatile u32*>(c.done) = c.ticket;
    }
    __syncthreads();
  }
}

}  // namespace elimina
