// Containers and arithmetic that every part of the planner uses.
#pragma once
#include <algorithm>
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::plan {

// Lists of numbers, stored one after another in one block. `add` extends the last list; `close` ends it.
struct Lists {
  std::vector<i64> starts{0};
  std::vector<int> items;

  static Lists of(std::span<const std::vector<int>> lists) {
    Lists result;
    std::size_t items = 0;
    for (const auto& list : lists) items += list.size();
    result.items.reserve(items);
    result.starts.reserve(lists.size() + 2);
    for (const auto& list : lists) result.append(list);
    return result;
  }

  void add(int item) { items.push_back(item); }
  void close() { starts.push_back(i64(items.size())); }
  void append(std::span<const int> list) {
    items.insert(items.end(), list.begin(), list.end());
    close();
  }
  i64 size() const { return i64(starts.size()) - 1; }
  [[gnu::always_inline]] std::span<const int> operator[](i64 number) const {
    return {items.data() + starts[number], items.data() + starts[number + 1]};
  }
};

// Numbers of cells are capped at this value, so that products of them do not overflow. No machine holds as many cells.
constexpr i64 kMostCells = i64{1} << 62;

inline i64 times(i64 a, i64 b) {
  i64 product;
  return __builtin_mul_overflow(a, b, &product) || product > kMostCells ? kMostCells : product;
}

inline i64 cells_of(std::span<const int> scope, std::span<const i64> sizes) {
  i64 cells = 1;
  for (const int v : scope) cells = times(cells, sizes[v]);
  return cells;
}

// A set of small numbers that is emptied in constant time.
class Marks {
 public:
  void resize(std::size_t count) { stamps_.resize(count); }
  void clear() { ++now_; }
  bool has(int number) const { return stamps_[number] == now_; }
  // Adds a number; returns true if it is new.
  bool add(int number) {
    if (stamps_[number] == now_) return false;
    stamps_[number] = now_;
    return true;
  }

 private:
  std::vector<i64> stamps_;
  i64 now_ = 1;
};

}  // namespace elimina::plan
