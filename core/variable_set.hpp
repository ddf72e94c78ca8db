// Sets of small numbers as bits.
#pragma once
#include <array>
#include <bit>

#include "elimina/config.hpp"

namespace elimina {

template <std::size_t Words>
class VariableSet {
 public:
  void add(i64 v) { words_[v / 64] |= u64{1} << (v % 64); }
  void remove(i64 v) { words_[v / 64] &= ~(u64{1} << (v % 64)); }
  bool has(i64 v) const { return words_[v / 64] >> (v % 64) & 1; }
  bool empty() const { return words_ == std::array<u64, Words>{}; }
  bool within(const VariableSet& other) const {
    for (std::size_t w = 0; w < Words; ++w)
      if (words_[w] & ~other.words_[w]) return false;
    return true;
  }
  VariableSet& operator|=(const VariableSet& other) {
    for (std::size_t w = 0; w < Words; ++w) words_[w] |= other.words_[w];
    return *this;
  }
  VariableSet& operator-=(const VariableSet& other) {
    for (std::size_t w = 0; w < Words; ++w) words_[w] &= ~other.words_[w];
    return *this;
  }
  friend VariableSet operator|(VariableSet a, const VariableSet& b) { return a |= b; }

  // The smallest number; there is one.
  i64 first() const {
    std::size_t w = 0;
    while (!words_[w]) ++w;
    return i64(w * 64) + std::countr_zero(words_[w]);
  }

  // Calls `f` with each number, in order.
  template <class F>
  void each(F f) const {
    for (std::size_t w = 0; w < Words; ++w)
      for (u64 word = words_[w]; word; word &= word - 1) f(i64(w * 64) + std::countr_zero(word));
  }

 private:
  std::array<u64, Words> words_{};
};

}  // namespace elimina
