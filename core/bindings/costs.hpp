// Cost functions as Python hands them over: sizes, scopes and flat tables.
#pragma once
#include <nanobind/ndarray.h>

#include <utility>
#include <vector>

#include "filter/model.hpp"

using Costs = nanobind::ndarray<const elimina::filter::Cost, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

inline elimina::filter::Model model_of(std::vector<int> sizes, std::vector<std::vector<elimina::filter::Var>> scopes,
                                       const std::vector<Costs>& tables, elimina::filter::Cost constant, elimina::filter::Cost upper) {
  elimina::filter::Model model{std::move(sizes), {}, constant, upper};
  if (scopes.size() != tables.size()) throw nanobind::value_error("as many scopes as tables are needed");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    std::size_t cells = 1;
    for (const elimina::filter::Var v : scopes[i]) {
      if (v < 0 || v >= model.count()) throw nanobind::index_error("a scope names no variable");
      cells *= std::size_t(model.size[v]);
    }
    if (cells != tables[i].size()) throw nanobind::value_error("a table has other cells than its scope");
    model.factors.push_back({std::move(scopes[i]), {tables[i].data(), tables[i].data() + cells}});
  }
  return model;
}
