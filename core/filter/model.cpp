#include "model.hpp"

#include <algorithm>
#include <cmath>

#include "order_greedy.hpp"
#include "stop.hpp"

namespace elimina::filter {

Cost Model::at(const std::vector<int>& value) const {
  Cost total = constant;
  for (const Factor& f : factors) {
    std::size_t cell = 0;
    for (Var v : f.scope) cell = cell * size[v] + value[v];
    total = add(total, f.cost[cell]);
  }
  return total;
}

network::View Model::view() const {
  network::View view{{network::Type::int64, 1, static_cast<double>(forbidden)}, size, {}};
  for (const Factor& f : factors) {
    view.functions.push_back({f.cost.data(), {}});
    std::int64_t stride = 1;
    for (std::size_t i = f.scope.size(); i-- > 0;) {
      view.functions.back().axes.push_back({f.scope[i], stride});
      stride *= size[f.scope[i]];
    }
  }
  return view;
}

void scale(Model& model, Cost by) {
  for (Factor& f : model.factors)
    for (Cost& c : f.cost)
      if (c < forbidden) c *= by;
  model.constant *= by;
  if (model.upper < forbidden) model.upper *= by;
}

namespace {

// Calls with the cell of `outer` and the matching cell of `inner`, whose scope is a subset.
template <class Visit>
void for_each_cell(const std::vector<int>& size, const std::vector<Var>& outer, const std::vector<Var>& inner,
                   Visit visit) {
  std::vector<std::size_t> stride(outer.size(), 0);
  std::size_t step = 1, cells = 1;
  for (std::size_t i = inner.size(); i-- > 0;) {
    stride[std::find(outer.begin(), outer.end(), inner[i]) - outer.begin()] = step;
    step *= size[inner[i]];
  }
  for (Var v : outer) cells *= size[v];
  std::vector<int> digit(outer.size(), 0);
  std::size_t place = 0;
  for (std::size_t cell = 0; cell < cells; ++cell) {
    visit(cell, place);
    for (std::size_t i = outer.size(); i-- > 0;) {
      place += stride[i];
      if (++digit[i] < size[outer[i]]) break;
      place -= stride[i] * digit[i];
      digit[i] = 0;
    }
  }
}

}  // namespace

void absorb(Model& model) {
  auto& factors = model.factors;
  std::stable_sort(factors.begin(), factors.end(),
                   [](const Factor& a, const Factor& b) { return a.scope.size() > b.scope.size(); });
  std::vector<std::vector<std::size_t>> touching(model.count());
  std::vector<Factor> kept;
  for (Factor& f : factors) {
    if (f.scope.empty()) {
      model.constant = add(model.constant, f.cost[0]);
      continue;
    }
    Factor* host = nullptr;
    for (std::size_t other : touching[f.scope[0]]) {
      const auto& scope = kept[other].scope;
      if (std::all_of(f.scope.begin(), f.scope.end(),
                      [&](Var v) { return std::find(scope.begin(), scope.end(), v) != scope.end(); })) {
        host = &kept[other];
        break;
      }
    }
    if (host) {
      for_each_cell(model.size, host->scope, f.scope,
                    [&](std::size_t cell, std::size_t place) { host->cost[cell] = add(host->cost[cell], f.cost[place]); });
      continue;
    }
    for (Var v : f.scope) touching[v].push_back(kept.size());
    kept.push_back(std::move(f));
  }
  factors = std::move(kept);
}

Model restrict(const Model& model, const std::vector<std::vector<int>>& kept) {
  Model result;
  result.constant = model.constant;
  result.upper = model.upper;
  std::vector<int> number(model.count(), -1);
  for (Var v = 0; v < model.count(); ++v) {
    if (kept[v].size() == 1) continue;
    number[v] = result.count();
    result.size.push_back(static_cast<int>(kept[v].size()));
  }
  for (const Factor& f : model.factors) {
    Factor part;
    std::size_t cells = 1;
    for (Var v : f.scope) {
      cells *= kept[v].size();
      if (number[v] >= 0) part.scope.push_back(number[v]);
    }
    part.cost.reserve(cells);
    std::vector<std::size_t> digit(f.scope.size(), 0);
    for (std::size_t cell = 0; cell < cells; ++cell) {
      std::size_t from = 0;
      for (std::size_t i = 0; i < digit.size(); ++i) from = from * model.size[f.scope[i]] + kept[f.scope[i]][digit[i]];
      part.cost.push_back(f.cost[from]);
      for (std::size_t i = digit.size(); i-- > 0;) {
        if (++digit[i] < kept[f.scope[i]].size()) break;
        digit[i] = 0;
      }
    }
    if (part.scope.empty())
      result.constant = add(result.constant, part.cost[0]);
    else
      result.factors.push_back(std::move(part));
  }
  return result;
}

Model renumber(const Model& model, const std::vector<Var>& order) {
  std::vector<Var> place(order.size());
  Model result;
  result.constant = model.constant;
  result.upper = model.upper;
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<Var>(i);
    result.size.push_back(model.size[order[i]]);
  }
  result.factors = model.factors;
  for (Factor& f : result.factors)
    for (Var& v : f.scope) v = place[v];
  return result;
}

std::vector<Var> min_fill(const Model& model, int rounds, std::uint64_t seed) {
  std::vector<std::int64_t> offsets{0};
  std::vector<order::Vertex> members;
  for (const Factor& f : model.factors) {
    members.insert(members.end(), f.scope.begin(), f.scope.end());
    offsets.push_back(static_cast<std::int64_t>(members.size()));
  }
  const order::Graph graph = order::moral_graph({model.size.begin(), model.size.end()}, offsets, members);
  const order::Clock clock(INFINITY);
  order::Random random(seed);
  order::Order best;
  double least = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    check_stop();
    const auto found = order::greedy(graph, order::Rule::min_fill, 0, least, random, clock);
    if (!found) continue;
    const double total = order::cost_of(graph, *found).total;
    if (best.empty() || total < least) best = *found, least = total;
  }
  return {best.begin(), best.end()};
}

}  // namespace elimina::filter
