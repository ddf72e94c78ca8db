// AllDifferent's filtering (include/elimina/different.hpp): first what changed is written, then parts are divided, each by a
// team of blocks. A team of one has its board in shared memory; larger ones wait for each other, so all blocks have to be resident.
#include <elimina/different.hpp>

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
  __device__ bool any(bool x) const { return __any_sync(mask, x); }

  template <class T>
  __device__ T load(const T* at) const {
    return *const_cast<const volatile T*>(at);
  }
  __device__ void unite(u64* at, u64 bits) const { atomicOr(at, bits); }
  __device__ void intersect(u64* at, u64 bits) const { atomicAnd(at, bits); }
  __device__ void raise(i32* at, i32 value) const { atomicMax(at, value); }
  __device__ u32 take(u32* at) const { return atomicAdd(at, 1u); }
  __device__ void publish() const { __threadfence_system(); }

  __device__ void sync() {
    __syncthreads();
    if (blocks == 1) return;
    ++generation;
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(barrier, 1u);
      while (load(barrier) < generation * blocks) {}
      __threadfence();
    }
    __syncthreads();
  }
};

__global__ void different_update(Call c) { different::update(c, u64(blockIdx.x) * blockDim.x + threadIdx.x, u64(gridDim.x) * blockDim.x); }

__global__ void __launch_bounds__(512) different_divide(Call c) {
  extern __shared__ u64 board[];
  const u32 p = blockIdx.x / c.blocks;
  const different::Part part = c.parts[p];
  BlockTeam team(blockIdx.x % c.blocks, c.blocks, c.barriers + 2 * p, part.words);
  different::Division<BlockTeam>(team, c, part, c.blocks == 1 ? board : c.scratch + part.board, c.scratch + part.rows).run(c.answers + p);
  if (team.thread() != 0) return;
  __threadfence_system();
  if (atomicAdd(c.barriers + 2 * c.part_count, 1u) + 1 == c.part_count) *const_cast<volatile u32*>(c.done) = c.ticket;
}

}  // namespace elimina
