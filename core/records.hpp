// Records (elimina/program.hpp) in words of 32 bits: half the memory, which is what a program of millions of small steps costs most.
#pragma once
#include <span>
#include <vector>

#include "elimina/program.hpp"

namespace elimina {

// The bits of 1.0: the weight of all narrow records, whose own word for it is 0.
constexpr i64 kUnitWeight = 0x3ff0000000000000;

inline bool fits_narrow(std::span<const i64> record) {
  if (record[kWeight] != kUnitWeight) return false;
  u64 above = 0;  // bits that 32 cannot hold
  for (std::size_t word = 0; word < record.size(); ++word) above |= word == kWeight ? 0 : (u64(record[word]) + (u64{1} << 31)) >> 32;
  return above == 0;
}

// Appends a record that fits.
inline void append_narrow(std::span<const i64> record, std::vector<i32>& to) {
  const std::size_t first = to.size();
  to.resize(first + record.size());
  for (std::size_t word = 0; word < record.size(); ++word) to[first + word] = i32(record[word]);
}

// Writes the record as it is elsewhere; `to` has room for it.
inline void widen(const i32* record, i64* to) {
  const i64 words = record[kWords];
  for (i64 word = 0; word < words; ++word) to[word] = record[word];
  to[kWeight] = kUnitWeight;
}

}  // namespace elimina
