#include "network.hpp"

#include <algorithm>
#include <stdexcept>

#include "counted.hpp"

namespace elimina::consistency {

namespace {

// Largest number of variables of a function: positions are bits of a word.
constexpr int most_arity = 64;

Cost stored(Cost cost) { return cost < network::forbidden ? cost : forbidden; }

Function function_of(network::Function&& source, const std::vector<int>& size) {
  Function f;
  static_cast<network::Function&>(f) = std::move(source);
  if (f.arity() > most_arity) throw std::invalid_argument("a scope has too many variables");
  std::vector<Var> sorted = f.scope;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    throw std::invalid_argument("a scope names a variable twice");
  std::transform(f.cost.begin(), f.cost.end(), f.cost.begin(), stored);
  f.transpose(size);
  count(f, size);
  return f;
}

}  // namespace

void Function::transpose(const std::vector<int>& size) {
  if (arity() != 2) return;
  const auto rows = static_cast<std::size_t>(size[scope[0]]), columns = static_cast<std::size_t>(size[scope[1]]);
  transposed.resize(cost.size());
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) transposed[c * rows + r] = cost[r * columns + c];
}

Network::Network(network::Network model, std::vector<Var> elimination)
    : order(std::move(elimination)), constant(model.constant), upper(model.upper) {
  std::reverse(order.begin(), order.end());
  std::vector<Var> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool permutes = sorted.size() == model.size.size();
  for (std::size_t i = 0; permutes && i < sorted.size(); ++i) permutes = sorted[i] == static_cast<Var>(i);
  if (!permutes) throw std::invalid_argument("the order has other variables than the model");
  model = network::renumber(model, order);
  size = model.size;
  touching.resize(size.size());
  for (const int n : size) {
    first.push_back(cells.size());
    cells.resize(cells.size() + static_cast<std::size_t>(n), 0);
  }
  for (network::Function& f : model.functions) {
    if (f.arity() == 1) {
      Cost* unary = cells.data() + first[f.scope[0]];
      for (std::size_t x = 0; x < f.cost.size(); ++x) unary[x] = std::min(forbidden, unary[x] + stored(f.cost[x]));
    } else {
      functions.push_back(function_of(std::move(f), size));
    }
  }
  join_pairs(functions, size);
  for (std::size_t i = 0; i < functions.size(); ++i) {
    Function& f = functions[i];
    for (int p = 0; p < f.arity(); ++p) {
      touching[f.scope[p]].push_back({{static_cast<int>(i), p}});
      f.shift.push_back(cells.size());
      cells.resize(cells.size() + static_cast<std::size_t>(size[f.scope[p]]), 0);
    }
  }
  note_fresh();
}

void Network::note_fresh() {
  std::vector<Var> seen(size.size(), -1);
  for (Var v = 0; v < count(); ++v) {
    for (Occurrence& occurrence : touching[v]) {
      const Function& f = functions[occurrence.function];
      occurrence.fresh = 0;
      for (int k = 0; k < f.arity(); ++k)
        if (seen[f.scope[k]] != v) occurrence.fresh |= std::uint64_t{1} << k, seen[f.scope[k]] = v;
    }
  }
}

Cost Network::at(const std::vector<int>& value) const {
  Cost total = constant;
  for (Var v = 0; v < count(); ++v) total = std::min(forbidden, total + cells[first[v] + value[v]]);
  for (const Function& f : functions) total = std::min(forbidden, total + f.at(value));
  return total;
}

void Network::list_costs(std::vector<int>& value, Var v, std::vector<Cost>& costs) const {
  const int old_value = value[v];
  for (value[v] = 0; value[v] < size[v]; ++value[v]) {
    Cost cost = cells[first[v] + value[v]];
    for (const Occurrence& occurrence : touching[v])
      cost = std::min(forbidden, cost + functions[occurrence.function].at(value));
    costs.push_back(cost);
  }
  value[v] = old_value;
}

std::vector<int> Network::outer(const std::vector<int>& value) const {
  std::vector<int> result(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) result[order[i]] = value[i];
  return result;
}

std::vector<int> Network::inner(const std::vector<int>& value) const {
  std::vector<int> result(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) result[i] = value[order[i]];
  return result;
}

}  // namespace elimina::consistency
