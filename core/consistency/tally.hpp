// Least costs of a counted function together with the costs of its variables' values.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "network.hpp"

namespace elimina::consistency {

// Finds the least cost with each count, by a rule: the free variables with the least differences take their counted
// value, and all others take their other value. A difference is the cost of the counted value minus the cost of the
// other value.
class Tally {
 public:
  void start(const Function& f) {
    table_ = f.cost.data();
    max_count_ = f.max_count;
    counted_ = 0;
    sum_ = 0;
    entries_.clear();
  }

  void add_value(bool counts, Cost cost) {
    counted_ += counts;
    sum_ += cost;
  }

  // Adds a free variable. `with`: cost of its counted value; `without`: cost of its other value.
  void add(Cost with, Cost without) {
    sum_ += without;
    entries_.push_back({without, with - without});
  }

  // Finds the smallest differences, in ascending order. One more is found than the number by which the count may still
  // rise, because `least` leaves out one variable.
  void rank() {
    if (max_count_ < counted_) return;
    ranked_.clear();
    for (std::size_t i = 0; i < entries_.size(); ++i) ranked_.push_back({entries_[i].difference, i});
    kept_ = std::min(ranked_.size(), max_count_ - counted_ + 1);
    std::partial_sort(ranked_.begin(), ranked_.begin() + static_cast<std::ptrdiff_t>(kept_), ranked_.end());
  }

  // Returns the least cost of the function and of all variables but the i-th free one, which has its counted value if
  // `counts` is true, else its other value.
  Cost least(std::size_t i, bool counts) const {
    Cost low = 4 * forbidden, sum = sum_ - entries_[i].without;
    std::size_t count = counted_ + counts;
    if (count > max_count_) return low;
    low = std::min(low, table_[count] + sum);
    for (std::size_t n = 0; n < kept_ && count < max_count_; ++n) {
      if (ranked_[n].second == i) continue;
      sum += ranked_[n].first;
      low = std::min(low, table_[++count] + sum);
    }
    return low;
  }

 private:
  struct Entry {
    Cost without, difference;
  };

  const Cost* table_ = nullptr;
  std::size_t max_count_ = 0, counted_ = 0, kept_ = 0;
  Cost sum_ = 0;
  std::vector<Entry> entries_;
  std::vector<std::pair<Cost, std::size_t>> ranked_;
};

}  // namespace elimina::consistency
