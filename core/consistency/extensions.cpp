#include "extensions.hpp"

#include <algorithm>
#include <iterator>

namespace elimina::consistency {

void Extensions::start(const Propagator& propagator, const std::vector<int>& value) {
  open_.clear();
  remaining_ = count_;
  is_started_ = true;
  add(propagator.state().constant(), {std::make_shared<std::vector<int>>(value), propagator.eliminated_count(), -1});
}

bool Extensions::next(const Propagator& propagator, Cost top, std::vector<int>& value) {
  if (remaining_ == 0 || open_.empty() || open_.begin()->first >= top) return false;
  const auto [cost, deviation] = std::move(*open_.begin());
  open_.erase(open_.begin());
  --remaining_;
  value = *deviation.value;
  if (deviation.other >= 0) value[propagator.eliminated(deviation.rank)] = deviation.other;
  const auto shared = std::make_shared<std::vector<int>>();
  for (std::size_t rank = deviation.rank; rank-- > 0;) {
    propagator.list_costs(rank, value, costs_);
    const auto best = *std::min_element(costs_.begin(), costs_.end(),
                                        [](const auto& one, const auto& other) { return one.second < other.second; });
    value[propagator.eliminated(rank)] = best.first;
    for (const auto& [other, other_cost] : costs_)
      if (other != best.first && cost + (other_cost - best.second) < top)
        add(cost + (other_cost - best.second), {shared, rank, other});
  }
  *shared = value;
  return true;
}

void Extensions::add(Cost cost, Deviation deviation) {
  if (open_.size() == remaining_) {
    if (remaining_ == 0 || std::prev(open_.end())->first <= cost) return;
    open_.erase(std::prev(open_.end()));
  }
  open_.emplace(cost, std::move(deviation));
}

void Extensions::end() {
  open_.clear();
  is_started_ = false;
}

}  // namespace elimina::consistency
