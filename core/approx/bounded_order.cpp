#include "approx/bounded_order.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "stop.hpp"

namespace elimina::approx {

std::vector<std::vector<std::int32_t>> neighbours_of(std::size_t variables, const ScopeList& scopes) {
  std::vector<std::vector<std::int32_t>> neighbours(variables);
  for (std::size_t number = 0; number < scopes.count(); ++number)
    for (const std::int32_t v : scopes[number])
      for (const std::int32_t w : scopes[number])
        if (v != w) neighbours[v].push_back(w);
  for (auto& list : neighbours) {
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
  }
  return neighbours;
}

std::vector<std::int32_t> bounded_order(std::span<const std::int64_t> sizes,
                                        std::vector<std::vector<std::int32_t>> neighbours, double max_cells,
                                        const std::vector<bool>& is_drawn, std::mt19937_64& random) {
  // Number of cells of a variable's table, a random number that breaks ties, and the variable.
  using Key = std::tuple<double, std::uint64_t, std::int32_t>;
  std::set<Key> smallest;
  std::set<std::tuple<bool, Key>> largest;
  std::vector<Key> keys(sizes.size());
  const auto key_of = [&](std::int32_t v) {
    double cells = double(sizes[v]);
    for (const std::int32_t w : neighbours[v]) cells *= double(sizes[w]);
    return Key{cells, random(), v};
  };
  const auto insert = [&](std::int32_t v) {
    keys[v] = key_of(v);
    smallest.insert(keys[v]);
    largest.insert({is_drawn[v], keys[v]});
  };
  const auto erase = [&](std::int32_t v) {
    smallest.erase(keys[v]);
    largest.erase({is_drawn[v], keys[v]});
  };
  for (std::size_t v = 0; v < sizes.size(); ++v) insert(std::int32_t(v));
  std::vector<std::int32_t> order, merged;
  Looks looks(64);
  while (!smallest.empty()) {
    looks.look();
    const bool is_eliminated = std::get<0>(*smallest.begin()) <= max_cells;
    const std::int32_t v = is_eliminated ? std::get<2>(*smallest.begin()) : std::get<2>(std::get<1>(*largest.rbegin()));
    erase(v);
    if (is_eliminated) order.push_back(v);
    const std::vector<std::int32_t> adjacent = std::move(neighbours[v]);
    for (const std::int32_t w : adjacent) {
      erase(w);
      auto& list = neighbours[w];
      if (is_eliminated) {
        merged.clear();
        std::ranges::set_union(list, adjacent, std::back_inserter(merged));
        list.swap(merged);
        std::erase(list, w);
      }
      std::erase(list, v);
      insert(w);
    }
  }
  return order;
}

}  // namespace elimina::approx
