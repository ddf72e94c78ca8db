// A set of numbers (variables or functions) from which the first or the last one is taken.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace elimina::consistency {

class Queue {
 public:
  explicit Queue(int count) : words_((static_cast<std::size_t>(count) + 63) / 64, 0) {}

  bool empty() const { return size_ == 0; }

  void push(int v) {
    const std::uint64_t bit = std::uint64_t{1} << (v % 64);
    std::uint64_t& word = words_[v / 64];
    if (!(word & bit)) ++size_;
    word |= bit;
  }

  int pop_first() {
    std::size_t i = 0;
    while (!words_[i]) ++i;
    const int bit = std::countr_zero(words_[i]);
    return remove(i, bit);
  }

  int pop_last() {
    std::size_t i = words_.size() - 1;
    while (!words_[i]) --i;
    return remove(i, 63 - std::countl_zero(words_[i]));
  }

  void clear() {
    if (size_) words_.assign(words_.size(), 0);
    size_ = 0;
  }

 private:
  int remove(std::size_t word, int bit) {
    words_[word] &= ~(std::uint64_t{1} << bit);
    --size_;
    return static_cast<int>(word * 64) + bit;
  }

  std::vector<std::uint64_t> words_;
  int size_ = 0;
};

}  // namespace elimina::consistency
