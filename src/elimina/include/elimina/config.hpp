// Definitions that depend on the compiler of these headers: a host compiler, nvcc, NVRTC or HIP.
#pragma once

#if defined(__HIP__)
#include <hip/hip_runtime.h>
#endif

#if defined(__CUDACC__) || defined(__HIP__)
#define ELIMINA_HD __host__ __device__
namespace elimina {
using i16 = short;
using i32 = int;
using i64 = long long;
using u32 = unsigned int;
using u64 = unsigned long long;
// The parts of the standard library in use. Including the library's headers would more than double the time of a
// run-time compilation.
namespace std {
template <class T>
struct numeric_limits {
  static constexpr ELIMINA_HD T infinity() { return T(__builtin_bit_cast(float, 0x7f800000u)); }
};
template <class T>
ELIMINA_HD T exp(T value) {
  return ::exp(value);
}
template <class T>
ELIMINA_HD T log(T value) {
  return ::log(value);
}
inline ELIMINA_HD int ilogb(double value) { return ::ilogb(value); }
}  // namespace std
}  // namespace elimina
#else
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#define ELIMINA_HD
namespace elimina {
using i16 = std::int16_t;
using i32 = std::int32_t;
using i64 = std::int64_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
}  // namespace elimina
#endif
