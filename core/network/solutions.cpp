#include "network/solutions.hpp"

namespace elimina::network {

bool BestSolutions::offer(Cost cost, const std::vector<int>& value) {
  if (cost >= limit() || (count_ > 1 && !values_.insert(value).second)) return false;
  const auto after = std::upper_bound(solutions_.begin(), solutions_.end(), cost,
                                      [](Cost bound, const Solution& other) { return bound < other.cost; });
  solutions_.insert(after, {cost, value});
  if (solutions_.size() > count_) {
    values_.erase(solutions_.back().value);
    solutions_.pop_back();
  }
  return true;
}

}  // namespace elimina::network
