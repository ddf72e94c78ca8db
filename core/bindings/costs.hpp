// Cost functions from Python, one after another in flat arrays.
#pragma once
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "network/network.hpp"

// The scope of function f is `members[starts[f]:starts[f + 1]]`.
struct Scopes {
  Words<const std::int64_t> starts;
  Words<const elimina::network::Var> members;

  std::size_t count() const { return starts.size() - 1; }
  std::span<const elimina::network::Var> operator[](std::size_t f) const {
    return span_of(members).subspan(std::size_t(starts(f)), std::size_t(starts(f + 1) - starts(f)));
  }
};

// Returns the first cell of each function, and the end of the last function's cells. Raises ValueError or IndexError if
// the scopes are invalid, or do not match the number of cells.
inline std::vector<std::size_t> checked_cells(const std::vector<int>& sizes, const Scopes& scopes,
                                              std::size_t cell_count) {
  const auto& [starts, members] = scopes;
  bool fit = starts.size() > 0 && starts(0) == 0 && std::size_t(starts(starts.size() - 1)) == members.size();
  for (std::size_t f = 1; fit && f < starts.size(); ++f) fit = starts(f - 1) <= starts(f);
  if (!fit) throw nanobind::value_error("the starts of the scopes do not fit their variables");
  std::vector<std::size_t> cells(scopes.count() + 1, 0);
  for (std::size_t f = 0; f < scopes.count(); ++f) {
    std::size_t product = 1;
    for (const elimina::network::Var v : scopes[f]) {
      if (v < 0 || std::size_t(v) >= sizes.size()) throw nanobind::index_error("a scope names no variable");
      // The product is capped at `cell_count` + 1, so that it cannot overflow.
      product = std::min(product * std::size_t(sizes[v]), cell_count + 1);
    }
    cells[f + 1] = std::min(cells[f] + product, cell_count + 1);
  }
  if (cells.back() != cell_count) throw nanobind::value_error("there are other cells than the scopes have");
  return cells;
}

using Costs = Words<const elimina::network::Cost>;

inline elimina::network::Network network_of(std::vector<int> sizes, const Scopes& scopes, const Costs& costs,
                                            elimina::network::Cost constant, elimina::network::Cost upper) {
  const auto cells = checked_cells(sizes, scopes, costs.size());
  elimina::network::Network network{std::move(sizes), {}, constant, upper};
  for (std::size_t f = 0; f < scopes.count(); ++f) {
    const auto scope = scopes[f];
    network.add_function({scope.begin(), scope.end()}, {costs.data() + cells[f], costs.data() + cells[f + 1]});
  }
  return network;
}

// Arrays of a cost-function network, for Python.
struct NetworkArrays {
  std::vector<int> sizes;
  elimina::network::Cost constant;
  Array<std::int64_t> starts;
  Array<elimina::network::Var> members;
  Array<elimina::network::Cost> costs;
};

inline NetworkArrays arrays_of(const elimina::network::Network& network) {
  std::vector<std::int64_t> starts{0};
  std::vector<elimina::network::Var> members;
  std::vector<elimina::network::Cost> costs;
  for (const auto& function : network.functions) {
    members.insert(members.end(), function.scope.begin(), function.scope.end());
    costs.insert(costs.end(), function.cost.begin(), function.cost.end());
    starts.push_back(std::int64_t(members.size()));
  }
  return {network.size, network.constant, array_of(std::move(starts)), array_of(std::move(members)),
          array_of(std::move(costs))};
}
