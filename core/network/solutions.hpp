// The best solutions so far, and cheap ones near a known solution.
#pragma once
#include <algorithm>
#include <set>
#include <vector>

#include "network/network.hpp"

namespace elimina::network {

struct Solution {
  Cost cost;
  std::vector<int> value;
};

// Different solutions, ordered by cost.
class BestSolutions {
 public:
  // `count`: largest number of solutions to keep.
  explicit BestSolutions(std::size_t count) : count_(count) {}

  // Keeps a solution, and drops the worst one if there are too many. Returns false, and changes nothing, if the
  // solution is kept already, or not better than the worst of a full list.
  bool offer(Cost cost, const std::vector<int>& value);

  // Limit on the cost of further solutions.
  Cost limit() const { return is_full() ? solutions_.back().cost : forbidden; }

  bool is_full() const { return solutions_.size() == count_; }
  std::size_t count() const { return count_; }
  const std::vector<Solution>& solutions() const { return solutions_; }

 private:
  std::size_t count_;
  std::vector<Solution> solutions_;
  std::set<std::vector<int>> values_;  // values of the solutions, if several are kept
};

// Adds cheap solutions that differ from a kept one in one variable, as long as some of these are among the best.
// `list_costs(value, v, costs)`: appends the cost of each value of a variable while all others keep theirs; only
// differences count. `size`: numbers of the variables' values. `limit`: solutions of this cost or more do not count.
template <class ListCosts>
void add_nearby(BestSolutions& best, const std::vector<int>& size, Cost limit, ListCosts list_costs) {
  // Copying a solution counts as visits, too: one for each `values_per_visit` of its values.
  constexpr std::size_t most_visits = 1 << 21, values_per_visit = 8;
  std::set<std::vector<int>> visited;
  std::vector<Cost> costs;
  for (std::size_t visits = 0; visits < most_visits;) {
    const auto& solutions = best.solutions();
    const auto next =
        std::find_if(solutions.begin(), solutions.end(), [&](const Solution& s) { return !visited.contains(s.value); });
    if (next == solutions.end()) return;
    const Solution solution = *next;
    visited.insert(solution.value);
    std::vector<int> value = solution.value;
    for (Var v = 0; v < static_cast<Var>(size.size()); ++v) {
      costs.clear();
      list_costs(value, v, costs);
      visits += costs.size() + 1;
      const Cost rest = solution.cost - costs[static_cast<std::size_t>(value[v])];
      for (int x = 0; x < size[v]; ++x) {
        const Cost cost = rest + costs[static_cast<std::size_t>(x)];
        if (x == solution.value[v] || cost >= std::min(limit, best.limit())) continue;
        value[v] = x;
        best.offer(cost, value);
        visits += value.size() / values_per_visit;
      }
      value[v] = solution.value[v];
    }
  }
}

}  // namespace elimina::network
