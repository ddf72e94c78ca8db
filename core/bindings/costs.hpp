// Cost functions as Python hands them over: sizes, scopes and flat tables.
#pragma once
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

#include "network/network.hpp"
#include "arrays.hpp"

using Costs = Words<const elimina::network::Cost>;

inline elimina::network::Network network_of(std::vector<int> sizes, std::vector<std::vector<elimina::network::Var>> scopes,
                                       const std::vector<Costs>& tables, elimina::network::Cost constant, elimina::network::Cost upper) {
  elimina::network::Network network{std::move(sizes), {}, constant, upper};
  if (scopes.size() != tables.size()) throw nanobind::value_error("as many scopes as tables are needed");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::size_t cells = 1;
    for (const elimina::network::Var v : scopes[i]) {
      if (v < 0 || v >= network.count()) throw nanobind::index_error("a scope names no variable");
      cells *= std::size_t(network.size[v]);
    }
    if (cells != tables[i].size()) throw nanobind::value_error("a table has other cells than its scope");
    network.add_function(std::move(scopes[i]), {tables[i].data(), tables[i].data() + cells});
  }
  return network;
}
