#include "value_costs.hpp"

#include <algorithm>

namespace elimina::cp {

ValueCosts::ValueCosts(std::vector<Entry> entries, Value unit, Value offset)
    : entries_(std::move(entries)), by_cost_(entries_), unit_(unit), offset_(offset) {
  std::stable_sort(by_cost_.begin(), by_cost_.end(), [](const Entry& a, const Entry& b) { return a.cost > b.cost; });
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.variable != b.variable ? a.variable < b.variable : a.cost < b.cost;
  });
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (variables_.empty() || variables_.back().variable != entries_[i].variable)
      variables_.push_back({entries_[i].variable, i, i});
    variables_.back().last = i + 1;
  }
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const auto variable = static_cast<std::size_t>(variables_[i].variable);
    if (ranks_.size() <= variable) ranks_.resize(variable + 1, 0);
    ranks_[variable] = i + 1;
  }
}

bool ValueCosts::filter(Domains& d, Value best, std::size_t& position) const {
  for (; position < by_cost_.size(); ++position) {
    const auto& [variable, value, cost] = by_cost_[position];
    if (-floor_div(-cost, unit_) + offset_ < best) break;
    if (!d.remove(View{variable}, value)) return false;
  }
  return true;
}

std::optional<Decision> ValueCosts::decide(const Engine& engine) const {
  const Domains& d = engine.domains();
  std::optional<Decision> result;
  double largest_loss = -1;
  for (const auto& [variable, first, last] : variables_) {
    if (d.fixed(View{variable})) continue;
    const Entry* best = nullptr;
    for (std::size_t i = first; i < last; ++i) {
      if (!d.has(variable, entries_[i].value)) continue;
      if (!best) {
        best = &entries_[i];
        continue;
      }
      const auto loss = static_cast<double>(entries_[i].cost - best->cost);
      if (loss > largest_loss) {
        largest_loss = loss;
        result = Decision{View{variable}, Test::is, best->value};
      }
      break;
    }
  }
  return result;
}

std::optional<Decision> ValueCosts::decide(const Domains& d, View x) const {
  const auto variable = static_cast<std::size_t>(x.var);
  if (variable >= ranks_.size() || ranks_[variable] == 0) return std::nullopt;
  const auto& [number, first, last] = variables_[ranks_[variable] - 1];
  for (std::size_t i = first; i < last; ++i)
    if (d.has(number, entries_[i].value)) return Decision{View{number}, Test::is, entries_[i].value};
  return std::nullopt;
}

}  // namespace elimina::cp
