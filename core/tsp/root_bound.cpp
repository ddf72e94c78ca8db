#include "root_bound.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "cp/types.hpp"

namespace elimina::tsp {

RootBound::RootBound(Distances distances, const std::vector<int>& from, const std::vector<int>& to)
    : distances_(distances), joined_(static_cast<std::size_t>(distances.cities)), best_(-OneTree::kNever) {
  graph_.cities = distances.cities;
  for (std::size_t k = 0; k < from.size(); ++k) add(from[k], to[k]);
  // The scale has to hold for edges that are added later.
  const std::size_t cells = static_cast<std::size_t>(distances.cities) * static_cast<std::size_t>(distances.cities);
  Length largest = 1;
  for (std::size_t k = 0; k < cells; ++k) largest = std::max(largest, std::abs(Length{distances.data[k]}));
  scale_ = OneTree::scale_of({distances.cities, {}, {}, {largest}});
  if (scale_ == 0) throw std::invalid_argument("the distances are too large for bounds");
  multipliers_.resize(joined_.size(), 0);
  best_multipliers_ = multipliers_;
}

void RootBound::add(int i, int j) {
  std::vector<int>& list = joined_[static_cast<std::size_t>(std::min(i, j))];
  if (std::find(list.begin(), list.end(), std::max(i, j)) != list.end()) return;
  list.push_back(std::max(i, j));
  graph_.from.push_back(i);
  graph_.to.push_back(j);
  graph_.length.push_back(distances_.between(i, j));
}

Length RootBound::changed(int i, int j, const std::vector<Length>& multipliers) const {
  return distances_.between(i, j) * scale_ + multipliers[static_cast<std::size_t>(i)] + multipliers[static_cast<std::size_t>(j)];
}

Length RootBound::bound() const { return best_ == -OneTree::kNever ? std::numeric_limits<Length>::min() / 4 : cp::ceil_div(best_, scale_); }

// Prim's algorithm from city 1 on.
RootBound::Tree RootBound::complete_tree(const std::vector<Length>& multipliers) const {
  const int n = graph_.cities;
  Tree tree;
  tree.parent.resize(static_cast<std::size_t>(n), -1);
  tree.above.resize(static_cast<std::size_t>(n), OneTree::kNever);
  tree.value = -2 * std::accumulate(multipliers.begin(), multipliers.end(), Length{0});
  std::vector<int> left(static_cast<std::size_t>(n - 1));
  std::iota(left.begin(), left.end(), 1);
  tree.above[1] = 0;
  for (std::size_t place = 0; !left.empty();) {
    const int city = left[place];
    left[place] = left.back();
    left.pop_back();
    tree.order.push_back(city);
    tree.value += tree.above[static_cast<std::size_t>(city)];
    place = 0;
    for (std::size_t k = 0; k < left.size(); ++k) {
      const auto other = static_cast<std::size_t>(left[k]);
      const Length length = changed(city, left[k], multipliers);
      if (length < tree.above[other]) {
        tree.above[other] = length;
        tree.parent[other] = city;
      }
      if (tree.above[other] < tree.above[static_cast<std::size_t>(left[place])]) place = k;
    }
  }
  std::vector<int> others(static_cast<std::size_t>(n - 1));
  std::iota(others.begin(), others.end(), 1);
  std::partial_sort(others.begin(), others.begin() + 2, others.end(),
                    [&](int a, int b) { return changed(0, a, multipliers) < changed(0, b, multipliers); });
  tree.first = others[0];
  tree.second = others[1];
  tree.value += changed(0, tree.first, multipliers) + changed(0, tree.second, multipliers);
  return tree;
}

bool RootBound::improve(Length upper, int steps) {
  OneTree few(graph_, scale_);
  if (!few.ascend(std::vector<Use>(graph_.edges(), Use::open), upper * scale_, steps, multipliers_))
    throw std::invalid_argument("the edges do not connect all cities");
  const Tree tree = complete_tree(multipliers_);
  const std::size_t before = graph_.edges();
  for (const int city : tree.order)
    if (tree.parent[static_cast<std::size_t>(city)] >= 0) add(city, tree.parent[static_cast<std::size_t>(city)]);
  add(0, tree.first);
  add(0, tree.second);
  const bool better = tree.value > best_;
  if (better) {
    best_ = tree.value;
    best_multipliers_ = multipliers_;
  }
  return better || graph_.edges() > before;
}

// The heaviest edge of the tree between a city and each other one: first on the way up, then from parents to children.
void RootBound::measure_paths(const Tree& tree, int from, std::vector<Length>& heaviest, std::vector<int>& seen) const {
  Length most = -OneTree::kNever;
  for (int city = from; city >= 0; city = tree.parent[static_cast<std::size_t>(city)]) {
    heaviest[static_cast<std::size_t>(city)] = most;
    seen[static_cast<std::size_t>(city)] = from;
    most = std::max(most, tree.above[static_cast<std::size_t>(city)]);
  }
  for (const int city : tree.order) {
    const auto i = static_cast<std::size_t>(city);
    if (seen[i] != from) heaviest[i] = std::max(heaviest[static_cast<std::size_t>(tree.parent[i])], tree.above[i]);
  }
}

std::optional<Graph> RootBound::survivors(Length upper, std::size_t most) const {
  const int n = graph_.cities;
  const Tree tree = complete_tree(best_multipliers_);
  const Length slack = upper * scale_ - tree.value;
  Graph result{n, {}, {}, {}};
  const auto keep = [&](int i, int j) {
    result.from.push_back(i);
    result.to.push_back(j);
    result.length.push_back(distances_.between(i, j));
  };
  const Length second = changed(0, tree.second, best_multipliers_);
  for (int j = 1; j < n; ++j)
    if (j == tree.first || changed(0, j, best_multipliers_) - second <= slack) keep(0, j);
  std::vector<Length> heaviest(static_cast<std::size_t>(n));
  std::vector<int> seen(static_cast<std::size_t>(n), 0);
  for (int i = 1; i < n && result.edges() <= most; ++i) {
    measure_paths(tree, i, heaviest, seen);
    for (int j = i + 1; j < n; ++j)
      if (changed(i, j, best_multipliers_) - heaviest[static_cast<std::size_t>(j)] <= slack) keep(i, j);
  }
  if (result.edges() > most) return std::nullopt;
  return result;
}

}  // namespace elimina::tsp
