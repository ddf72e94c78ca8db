// Set of the values of a variable that have a support, as bits. All other values are then removed.
#pragma once
#include <bit>
#include <span>
#include <vector>

#include "cp/domains.hpp"

namespace elimina::cp {

class SupportedValues {
 public:
  void begin(Value lo, Value hi) {
    base_ = lo;
    words_.assign(static_cast<std::size_t>(hi - lo) / 64 + 1, 0);
  }
  Value base() const { return base_; }
  std::span<std::uint64_t> words() { return words_; }
  void add(Value value) {
    const auto bit = static_cast<std::size_t>(value - base_);
    words_[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }

  bool apply(Domains& d, View x) const {
    if (!d.set_lo(x, base_) || !d.set_hi(x, base_ + static_cast<Value>(words_.size() * 64) - 1)) return false;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const Value from = base_ + static_cast<Value>(w * 64);
      for (std::uint64_t lost = d.row_word(x, from) & ~words_[w]; lost; lost &= lost - 1)
        if (!d.remove(x, from + std::countr_zero(lost))) return false;
    }
    return true;
  }

 private:
  Value base_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace elimina::cp
