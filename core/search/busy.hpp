// Numbers of threads that search below an assignment, so that other threads choose another assignment (M. Weill, "The
// ABDADA distributed minimax search algorithm", ICCA Journal 19, 1996). Assignments that share a counter only make the
// choice worse, not wrong.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "cache.hpp"

namespace elimina::search {

class Busy {
 public:
  // Returns the counter of the value x of a variable in a context; `key` packs the variable and the context.
  std::size_t slot_of(const Cache::Word* key, int words, int x) const {
    Cache::Word hash = static_cast<Cache::Word>(x) + 1;
    for (int i = 0; i < words; ++i) hash = (hash ^ key[i]) * 0x9e3779b97f4a7c15, hash ^= hash >> 32;
    return static_cast<std::size_t>(hash * 0xd6e8feb86659fd93 >> 48);
  }
  int count(std::size_t slot) const { return count_[slot].load(std::memory_order_relaxed); }
  void enter(std::size_t slot) { count_[slot].fetch_add(1, std::memory_order_relaxed); }
  void leave(std::size_t slot) { count_[slot].fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::int16_t>, 1 << 16> count_{};
};

}  // namespace elimina::search
