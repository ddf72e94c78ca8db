// The one place that knows which compiler reads these headers: a host compiler, nvcc or NVRTC.
#pragma once

#if defined(__CUDACC__)
#include <cuda/std/cstdint>
#include <cuda/std/cmath>
#include <cuda/std/limits>
#define ELIMINA_HD __host__ __device__
namespace elimina {
namespace std = ::cuda::std;
}
#else
#include <cmath>
#include <cstdint>
#include <limits>
#define ELIMINA_HD
#endif

namespace elimina {
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;
}  // namespace elimina
