// Gathering and scattering the bits of a word under a mask.
#pragma once
#include <cstdint>
#if defined(__BMI2__)
#include <immintrin.h>
#endif

namespace elimina::filter::ELIMINA_ISA {

using Key = std::uint64_t;

// The bits of the key under the mask, close together.
inline Key extract(Key key, Key mask) {
#if defined(__BMI2__)
  return _pext_u64(key, mask);
#else
  Key found = 0;
  for (int at = 0; mask; ++at, mask &= mask - 1) found |= Key((key & mask & -mask) != 0) << at;
  return found;
#endif
}

// The lowest bits of a word, put under the mask.
inline Key deposit(Key bits, Key mask) {
#if defined(__BMI2__)
  return _pdep_u64(bits, mask);
#else
  Key found = 0;
  for (; mask; bits >>= 1, mask &= mask - 1) found |= (bits & 1) ? mask & -mask : 0;
  return found;
#endif
}

}  // namespace elimina::filter::ELIMINA_ISA
