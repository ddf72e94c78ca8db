// Scopes from Python.
#pragma once
#include <nanobind/nanobind.h>

#include <algorithm>

#include "approx/scoped_tables.hpp"
#include "arrays.hpp"

namespace elimina::approx {

// Returns scopes that lie one after another. Raises ValueError or IndexError unless each has at most 60 variables of
// the model, all different.
inline ScopeList scope_list_of(const Words<const std::int64_t>& starts, const Words<const std::int32_t>& members,
                               std::size_t variables) {
  ScopeList lists{list_of(starts), list_of(members)};
  if (lists.starts.empty() || lists.starts.front() != 0 || !std::ranges::is_sorted(lists.starts) ||
      lists.starts.back() != static_cast<std::int64_t>(lists.members.size()))
    throw nanobind::value_error("the starts go from 0 to the number of members");
  std::vector<std::int32_t> scope;
  for (std::size_t number = 0; number < lists.count(); ++number) {
    scope.assign(lists[number].begin(), lists[number].end());
    std::ranges::sort(scope);
    if (scope.size() > 60 || std::ranges::adjacent_find(scope) != scope.end())
      throw nanobind::value_error("a scope has at most 60 variables, each once");
    if (!scope.empty() && (scope.front() < 0 || static_cast<std::size_t>(scope.back()) >= variables))
      throw nanobind::index_error("there is no such variable");
  }
  return lists;
}

}  // namespace elimina::approx
