#include "dcop/team.hpp"

#include <algorithm>
#include <numeric>

namespace elimina::dcop {

std::vector<Traversal> traversals_of(const tables::Tables& functions, i64 variables, i64 degree,
                                     std::span<const i64> ranks, bool prefers_reached) {
  std::vector<std::vector<int>> neighbours(variables);
  for (i64 number = 0; number < functions.size(); ++number) {
    const auto scope = functions.scope(number);
    for (const int v : scope)
      for (const int other : scope)
        if (other != v) neighbours[v].push_back(other);
  }
  std::vector<Traversal> traversals;
  traversals.reserve(neighbours.size());
  for (int v = 0; v < int(variables); ++v) {
    std::vector<int>& neighbours_of_variable = neighbours[v];
    std::ranges::sort(neighbours_of_variable);
    neighbours_of_variable.erase(std::unique(neighbours_of_variable.begin(), neighbours_of_variable.end()),
                                 neighbours_of_variable.end());
    const i64 rank = degree * i64(neighbours_of_variable.size()) + (ranks.empty() ? 0 : ranks[v]);
    traversals.emplace_back(v, rank, std::move(neighbours_of_variable), prefers_reached);
  }
  return traversals;
}

std::vector<i64> with_variables(const tables::Tables& functions) {
  std::vector<i64> numbers;
  for (i64 number = 0; number < functions.size(); ++number)
    if (!functions.scope(number).empty()) numbers.push_back(number);
  return numbers;
}

plan::PlannedTree pseudo_tree(std::span<Traversal* const> traversals, const tables::Tables& functions,
                              std::vector<i64> sizes) {
  std::vector<int> order(traversals.size()), roots(traversals.size());
  std::iota(order.begin(), order.end(), 0);
  const auto visit = [&](int v) { return traversals[v]->visit(); };
  std::ranges::stable_sort(order, {}, visit);
  for (const int v : order) roots[v] = traversals[v]->parent() < 0 ? v : roots[traversals[v]->parent()];
  std::ranges::sort(order, {}, [&](int v) { return std::pair(roots[v], -visit(v)); });
  plan::Lists scopes;
  for (const i64 number : with_variables(functions)) scopes.append(functions.scope(number));
  return plan::plan_tree(std::move(scopes), std::move(sizes), std::move(order));
}

int misplaced(std::span<Traversal* const> traversals, const plan::Tree& tree) {
  for (i64 number = 0; number < tree.size(); ++number) {
    const int parent = tree.parents[number] < 0 ? -1 : tree.variables[tree.parents[number]];
    if (traversals[tree.variables[number]]->parent() != parent) return tree.variables[number];
  }
  return -1;
}

}  // namespace elimina::dcop
