#include "approx/region_graph.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "stop.hpp"

namespace elimina::approx {

namespace {

using Scope = std::vector<std::int32_t>;

using ScopeSet = std::set<Scope>;

bool contains(std::span<const std::int32_t> whole, std::span<const std::int32_t> subset) {
  return std::ranges::includes(whole, subset);
}

// Disjoint sets of the numbers below a count.
class DisjointSets {
 public:
  explicit DisjointSets(std::size_t count) : roots_(count), sets_(count) {
    std::iota(roots_.begin(), roots_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t number) {
    while (roots_[number] != number) number = roots_[number] = roots_[roots_[number]];
    return number;
  }
  void unite(std::size_t first, std::size_t other) {
    first = root(first), other = root(other);
    if (first == other) return;
    roots_[std::max(first, other)] = std::min(first, other);
    --sets_;
  }
  std::size_t sets() const { return sets_; }

 private:
  std::vector<std::size_t> roots_;
  std::size_t sets_;
};

// Sets `shared` to the variables that two sorted scopes share. Returns true if `first` and `second` are the first two
// of these: a pair of regions is met once for each two variables that it shares, and counts only once.
bool intersect(std::span<const std::int32_t> scope, std::span<const std::int32_t> other, std::int32_t first,
               std::int32_t second, Scope& shared) {
  shared.clear();
  std::ranges::set_intersection(scope, other, std::back_inserter(shared));
  return shared.size() >= 2 && shared[0] == first && shared[1] == second;
}

}  // namespace

RegionGraph::RegionGraph(std::vector<std::int64_t> sizes, const ScopeList& clusters, std::size_t largest,
                         std::int64_t max_members)
    : sizes_(std::move(sizes)), max_members_(max_members), outer_of_(sizes_.size()) {
  set_outer(clusters);
  is_complete_ = add_intersections(largest) && count_inner();
  intersections_ = {};
}

void RegionGraph::set_outer(const ScopeList& clusters) {
  std::vector<std::size_t> order(clusters.count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t number) { return clusters[number].size(); });
  std::vector<bool> is_outer(clusters.count(), false);
  for (const std::size_t number : order) {
    const std::span scope = clusters[number];
    if (scope.empty()) continue;
    const std::int32_t rarest =
        *std::ranges::min_element(scope, {}, [&](std::int32_t v) { return outer_of_[v].size(); });
    is_outer[number] =
        std::ranges::none_of(outer_of_[rarest], [&](std::int32_t n) { return contains(clusters[n], scope); });
    if (is_outer[number])
      for (const std::int32_t v : scope) outer_of_[v].push_back(std::int32_t(number));
  }
  // Regions are numbered in the order of their clusters.
  std::vector<std::int32_t> numbers(clusters.count(), -1);
  for (std::size_t number = 0; number < clusters.count(); ++number) {
    if (!is_outer[number]) continue;
    numbers[number] = std::int32_t(outer_.count());
    outer_.append(clusters[number]);
  }
  for (auto& list : outer_of_) {
    for (std::int32_t& number : list) number = numbers[number];
    std::ranges::sort(list);
  }
}

bool RegionGraph::add_intersections(std::size_t largest) {
  ScopeSet scopes;
  for (std::size_t v = 0; v < sizes_.size(); ++v)
    if (outer_of_[v].size() > 1) scopes.insert({std::int32_t(v)});
  struct Holder {
    std::int32_t first, second, region;
    auto operator<=>(const Holder&) const = default;
  };
  std::vector<Holder> holders;
  if (largest > 1) {
    for (std::size_t region = 0; region < outer_.count(); ++region) {
      const std::span scope = outer_[region];
      for (std::size_t i = 0; i < scope.size(); ++i)
        for (std::size_t j = i + 1; j < scope.size(); ++j)
          if (std::min(outer_of_[scope[i]].size(), outer_of_[scope[j]].size()) > 1)
            holders.push_back({scope[i], scope[j], std::int32_t(region)});
      if (std::int64_t(holders.size()) > max_members_ || stopped()) return false;
    }
  }
  std::ranges::sort(holders);
  std::int64_t members = 0, looks = 0;
  std::vector<Scope> pending;
  Scope shared;
  const auto add = [&](const Scope& scope) {
    if (scope.size() > largest || !scopes.insert(scope).second) return;
    members += std::int64_t(scope.size());
    if (scope.size() > 2) pending.push_back(scope);
  };
  const auto is_over = [&] {
    constexpr std::int64_t steps_between_polls = 1024;
    return members > max_members_ || (++looks % steps_between_polls == 0 && stopped());
  };
  for (std::size_t begin = 0, end = 0; begin < holders.size(); begin = end) {
    const auto [first, second, region] = holders[begin];
    while (end < holders.size() && holders[end].first == first && holders[end].second == second) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      for (std::size_t j = i + 1; j < end; ++j) {
        if (intersect(outer_[holders[i].region], outer_[holders[j].region], first, second, shared)) add(shared);
        if (is_over()) return false;
      }
    }
  }
  while (!pending.empty()) {
    const Scope scope = std::move(pending.back());
    pending.pop_back();
    for (std::size_t i = 0; i < scope.size(); ++i) {
      for (std::size_t j = i + 1; j < scope.size(); ++j) {
        auto holder = std::ranges::lower_bound(holders, Holder{scope[i], scope[j], 0});
        for (; holder != holders.end() && holder->first == scope[i] && holder->second == scope[j]; ++holder) {
          if (intersect(scope, outer_[holder->region], scope[i], scope[j], shared) && shared.size() < scope.size())
            add(shared);
          if (is_over()) return false;
        }
      }
    }
  }
  intersections_.assign(scopes.begin(), scopes.end());
  std::ranges::stable_sort(intersections_, std::greater{}, [](const Scope& scope) { return scope.size(); });
  return true;
}

std::vector<std::int32_t> RegionGraph::containing(std::span<const std::int32_t> scope) const {
  const std::int32_t rarest = *std::ranges::min_element(scope, {}, [&](std::int32_t v) { return outer_of_[v].size(); });
  std::vector<std::int32_t> regions;
  for (const std::int32_t region : outer_of_[rarest])
    if (contains(outer_[region], scope)) regions.push_back(region);
  return regions;
}

bool RegionGraph::count_inner() {
  // Larger regions first: the counting number of a region is 1 minus the sum of those of all regions that contain it.
  std::vector<std::vector<std::int32_t>> inner_of(sizes_.size());
  std::vector<std::vector<std::int32_t>> all_parents;
  std::vector<std::size_t> positions(outer_.count());
  for (const Scope& scope : intersections_) {
    if (stopped() || std::int64_t(parents_.members.size() + inner_.members.size()) > max_members_) return false;
    const std::vector<std::int32_t> regions = containing(scope);
    for (std::size_t i = 0; i < regions.size(); ++i) positions[regions[i]] = i;
    double number = 1 - double(regions.size());
    DisjointSets sets(regions.size());
    const std::int32_t rarest =
        *std::ranges::min_element(scope, {}, [&](std::int32_t v) { return inner_of[v].size(); });
    for (const std::int32_t larger : inner_of[rarest]) {
      if (!contains(inner_[larger], scope)) continue;
      number -= counting_numbers_[larger];
      const std::vector<std::int32_t>& holders = all_parents[larger];
      for (const std::int32_t holder : holders) sets.unite(positions[holders.front()], positions[holder]);
    }
    if (number == 0 && sets.sets() == 1) continue;
    const auto inner = std::int32_t(inner_.count());
    inner_.append(scope);
    counting_numbers_.push_back(number);
    for (const std::int32_t v : scope) inner_of[v].push_back(inner);
    if (number != 0) {
      parents_.append(regions);
    } else {
      // Through larger inner regions, all outer regions of a set already agree on this scope, so each set needs only
      // one edge.
      Scope firsts;
      for (std::size_t i = 0; i < regions.size(); ++i)
        if (sets.root(i) == i) firsts.push_back(regions[i]);
      parents_.append(firsts);
    }
    all_parents.push_back(regions);
  }
  return true;
}

std::int64_t RegionGraph::holder(std::span<const std::int32_t> scope) const {
  if (scope.empty()) return outer_.count() ? 0 : -1;
  const std::vector<std::int32_t> regions = containing(scope);
  return regions.empty() ? -1 : regions.front();
}

double RegionGraph::outer_cells() const {
  double cells = 0;
  for (std::size_t region = 0; region < outer_.count(); ++region) cells += double(cells_of(outer_[region], sizes_));
  return cells;
}

double RegionGraph::message_cells() const {
  double cells = 0;
  for (std::size_t region = 0; region < inner_.count(); ++region)
    cells += double(cells_of(inner_[region], sizes_)) * double(parents_[region].size());
  return cells;
}

ScopeList RegionGraph::grow(double max_cells) const {
  ScopeSet scopes;
  std::set<std::int32_t> variables;
  for (std::size_t region = 0; region < inner_.count(); ++region) {
    if (counting_numbers_[region] == 0 || stopped()) continue;
    variables.clear();
    double cells = 1;
    for (const std::int32_t outer : containing(inner_[region])) {
      for (const std::int32_t v : outer_[outer])
        if (variables.insert(v).second) cells *= double(sizes_[v]);
      if (cells > max_cells) break;
    }
    if (cells <= max_cells) scopes.emplace(variables.begin(), variables.end());
  }
  ScopeList clusters{{0}, {}};
  for (const Scope& scope : scopes) clusters.append(scope);
  for (std::size_t region = 0; region < outer_.count(); ++region) clusters.append(outer_[region]);
  return clusters;
}

ScopeList short_loops(std::size_t variables, const ScopeList& scopes, std::size_t max_loops) {
  std::vector<Scope> neighbours(variables);
  std::vector<std::vector<std::int32_t>> scopes_of(variables);
  for (std::size_t number = 0; number < scopes.count(); ++number) {
    for (const std::int32_t v : scopes[number]) {
      scopes_of[v].push_back(std::int32_t(number));
      for (const std::int32_t w : scopes[number])
        if (w != v) neighbours[v].push_back(w);
    }
  }
  for (Scope& list : neighbours) {
    std::ranges::sort(list);
    const auto repeated = std::ranges::unique(list);
    list.erase(repeated.begin(), repeated.end());
  }
  ScopeList loops{{0}, {}};
  const auto are_adjacent = [&](std::int32_t v, std::int32_t w) {
    return std::ranges::binary_search(neighbours[v], w);
  };
  const auto is_in_scope = [&](const Scope& loop) {
    return std::ranges::any_of(scopes_of[loop.front()], [&](std::int32_t number) {
      return std::ranges::all_of(loop, [&](std::int32_t v) { return std::ranges::count(scopes[number], v) > 0; });
    });
  };
  const auto is_full = [&] { return loops.count() >= max_loops; };
  // Finds each loop from its smallest variable u: triangles u < v < w, and squares whose corner opposite to u is w.
  std::vector<Scope> between(variables);
  Scope opposite;
  for (std::int32_t u = 0; u < std::int32_t(variables) && !is_full() && !stopped(); ++u) {
    opposite.clear();
    for (const std::int32_t v : neighbours[u]) {
      if (v < u) continue;
      for (const std::int32_t w : neighbours[v]) {
        if (w <= u) continue;
        if (!are_adjacent(u, w)) {
          if (between[w].empty()) opposite.push_back(w);
          between[w].push_back(v);
        } else if (v < w && !is_full() && !is_in_scope({u, v, w})) {
          loops.append(Scope{u, v, w});
        }
      }
    }
    for (const std::int32_t w : opposite) {
      const Scope& middle = between[w];
      for (std::size_t i = 0; i < middle.size(); ++i) {
        for (std::size_t j = i + 1; j < middle.size() && !is_full(); ++j) {
          if (are_adjacent(middle[i], middle[j])) continue;
          Scope loop{u, middle[i], w, middle[j]};
          std::ranges::sort(loop);
          if (!is_in_scope(loop)) loops.append(loop);
        }
      }
      between[w].clear();
    }
  }
  return loops;
}

}  // namespace elimina::approx
