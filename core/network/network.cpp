#include "network/network.hpp"

#include <algorithm>
#include <cmath>

#include "order/greedy.hpp"
#include "stop.hpp"

namespace elimina::network {

void Network::add_function(std::vector<Var> scope, std::vector<Cost> cost) {
  if (scope.empty()) {
    constant = add(constant, cost[0]);
    return;
  }
  std::vector<std::size_t> stride(scope.size(), 1);
  for (std::size_t i = scope.size(); i-- > 1;) stride[i - 1] = stride[i] * static_cast<std::size_t>(size[scope[i]]);
  functions.push_back({std::move(scope), std::move(stride), std::move(cost)});
}

Cost Network::at(const std::vector<int>& value) const {
  Cost total = constant;
  for (const Function& f : functions) total = add(total, f.cost[f.cell(value)]);
  return total;
}

void Network::list_costs(const std::vector<int>& value, Var v, const std::vector<Occurrence>& places,
                         std::vector<Cost>& costs) const {
  const std::size_t from = costs.size();
  costs.resize(from + static_cast<std::size_t>(size[v]), 0);
  for (const auto& [number, position] : places) {
    const Function& f = functions[number];
    const std::size_t stride = f.stride[position];
    const Cost* cell = f.cost.data() + (f.cell(value) - stride * static_cast<std::size_t>(value[v]));
    for (std::size_t x = from; x < costs.size(); ++x, cell += stride) costs[x] = add(costs[x], *cell);
  }
}

std::vector<std::vector<Occurrence>> Network::touching() const {
  std::vector<std::vector<Occurrence>> occurrences(size.size());
  for (int i = 0; i < static_cast<int>(functions.size()); ++i)
    for (int p = 0; p < functions[i].arity(); ++p) occurrences[functions[i].scope[p]].push_back({i, p});
  return occurrences;
}

View Network::view() const {
  View view{{Type::int64, static_cast<double>(forbidden)}, size, {}};
  for (const Function& f : functions) {
    view.functions.push_back({f.cost.data(), {}});
    for (int p = 0; p < f.arity(); ++p)
      view.functions.back().axes.push_back({f.scope[p], static_cast<std::int64_t>(f.stride[p])});
  }
  return view;
}

void scale(Network& network, Cost by) {
  for (Function& f : network.functions)
    for (Cost& c : f.cost)
      if (c < forbidden) c *= by;
  network.constant *= by;
  if (network.upper < forbidden) network.upper *= by;
}

void absorb(Network& network) {
  auto& functions = network.functions;
  std::stable_sort(functions.begin(), functions.end(),
                   [](const Function& a, const Function& b) { return a.arity() > b.arity(); });
  std::vector<std::vector<std::size_t>> touching(network.count());
  std::vector<Function> kept;
  for (Function& f : functions) {
    Function* host = nullptr;
    for (std::size_t other : touching[f.scope[0]]) {
      const auto& scope = kept[other].scope;
      if (std::all_of(f.scope.begin(), f.scope.end(),
                      [&](Var v) { return std::find(scope.begin(), scope.end(), v) != scope.end(); })) {
        host = &kept[other];
        break;
      }
    }
    if (host) {
      std::vector<std::size_t> stride(host->scope.size(), 0);
      for (int p = 0; p < f.arity(); ++p)
        stride[std::find(host->scope.begin(), host->scope.end(), f.scope[p]) - host->scope.begin()] = f.stride[p];
      Cost* cost = host->cost.data();
      for_each_cell(network.size, host->scope, [&](const std::vector<int>& digit) {
        std::size_t cell = 0;
        for (std::size_t i = 0; i < digit.size(); ++i) cell += stride[i] * digit[i];
        *cost = add(*cost, f.cost[cell]);
        ++cost;
      });
      continue;
    }
    for (Var v : f.scope) touching[v].push_back(kept.size());
    kept.push_back(std::move(f));
  }
  functions = std::move(kept);
}

Network restrict(const Network& network, const std::vector<std::vector<int>>& remaining_values) {
  Network result{{}, {}, network.constant, network.upper};
  std::vector<int> number(network.count(), -1), sizes;
  for (Var v = 0; v < network.count(); ++v) {
    sizes.push_back(static_cast<int>(remaining_values[v].size()));
    if (sizes[v] == 1) continue;
    number[v] = result.count();
    result.size.push_back(sizes[v]);
  }
  for (const Function& f : network.functions) {
    std::vector<Var> scope;
    std::vector<Cost> cost;
    for (Var v : f.scope)
      if (number[v] >= 0) scope.push_back(number[v]);
    for_each_cell(sizes, f.scope, [&](const std::vector<int>& digit) {
      std::size_t from = 0;
      for (std::size_t i = 0; i < digit.size(); ++i) from += f.stride[i] * remaining_values[f.scope[i]][digit[i]];
      cost.push_back(f.cost[from]);
    });
    result.add_function(std::move(scope), std::move(cost));
  }
  return result;
}

Network renumber(const Network& network, const std::vector<Var>& order) {
  std::vector<Var> position(order.size());
  Network result = network;
  for (std::size_t i = 0; i < order.size(); ++i) {
    position[order[i]] = static_cast<Var>(i);
    result.size[i] = network.size[order[i]];
  }
  for (Function& f : result.functions)
    for (Var& v : f.scope) v = position[v];
  return result;
}

std::vector<Var> min_fill(const Network& network, int rounds, std::uint64_t seed) {
  std::vector<std::int64_t> offsets{0};
  std::vector<order::Vertex> members;
  for (const Function& f : network.functions) {
    members.insert(members.end(), f.scope.begin(), f.scope.end());
    offsets.push_back(static_cast<std::int64_t>(members.size()));
  }
  const order::Graph graph = order::moral_graph({network.size.begin(), network.size.end()}, offsets, members);
  order::Clock clock(INFINITY);
  order::Random random(seed);
  order::Order best;
  double least = INFINITY;
  for (int round = 0; round < rounds; ++round) {
    check_stop();
    const auto candidate = order::greedy(graph, order::Rule::min_fill, 0, least, random, clock);
    if (!candidate) continue;
    const double total = order::cost_of(graph, *candidate).total;
    if (best.empty() || total < least) best = *candidate, least = total;
  }
  return {best.begin(), best.end()};
}

}  // namespace elimina::network
