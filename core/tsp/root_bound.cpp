#include "root_bound.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <stdexcept>

#include "cp/types.hpp"
#include "sites.hpp"
#include "stop.hpp"

namespace elimina::tsp {

RootBound::RootBound(Distances distances, const std::vector<int>& from, const std::vector<int>& to)
    : distances_(distances), joined_(static_cast<std::size_t>(distances.cities)),
      ascent_(graph_, find_sites(distances)), best_(-OneTree::kNever) {
  graph_.cities = distances.cities;
  for (std::size_t k = 0; k < from.size(); ++k) add(from[k], to[k]);
  // The scale must suit edges that are added later, too.
  const std::size_t cells = static_cast<std::size_t>(distances.cities) * static_cast<std::size_t>(distances.cities);
  const auto [least, largest] = std::minmax_element(distances.data, distances.data + cells);
  largest_ = std::max({Length{1}, std::abs(Length{*least}), std::abs(Length{*largest})});
  scale_ = OneTree::scale_of({distances.cities, {}, {}, {largest_}});
  if (scale_ == 0) throw std::invalid_argument("the distances are too large for bounds");
  multipliers_.resize(joined_.size(), 0);
  best_multipliers_.resize(joined_.size(), 0);
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
  return distances_.between(i, j) * scale_ + multipliers[static_cast<std::size_t>(i)] +
         multipliers[static_cast<std::size_t>(j)];
}

std::optional<Length> RootBound::bound() const {
  if (best_ == -OneTree::kNever) return std::nullopt;
  return cp::ceil_div(best_, scale_);
}

bool RootBound::reaches(Length upper) const { return best_ > (upper - 1) * scale_; }

// Runs Prim's algorithm over all cities from `first` on; after a stop request, the tree may lack cities.
RootBound::Tree RootBound::spanning_tree(int first, const std::vector<Length>& multipliers) const {
  const int n = graph_.cities;
  Tree tree;
  tree.parent.resize(static_cast<std::size_t>(n), -1);
  tree.above.resize(static_cast<std::size_t>(n), OneTree::kNever);
  std::vector<int> remaining(static_cast<std::size_t>(n - first));
  std::iota(remaining.begin(), remaining.end(), first);
  tree.above[static_cast<std::size_t>(first)] = 0;
  for (std::size_t nearest = 0; !remaining.empty();) {
    const int city = remaining[nearest];
    if (tree.order.size() % kCitiesBetweenStops == 0 && stopped()) break;
    remaining[nearest] = remaining.back();
    remaining.pop_back();
    tree.order.push_back(city);
    tree.value += tree.above[static_cast<std::size_t>(city)];
    nearest = 0;
    for (std::size_t k = 0; k < remaining.size(); ++k) {
      const auto other = static_cast<std::size_t>(remaining[k]);
      const Length length = changed(city, remaining[k], multipliers);
      if (length < tree.above[other]) {
        tree.above[other] = length;
        tree.parent[other] = city;
      }
      if (tree.above[other] < tree.above[static_cast<std::size_t>(remaining[nearest])]) nearest = k;
    }
  }
  return tree;
}

std::optional<RootBound::Tree> RootBound::complete_tree(const std::vector<Length>& multipliers) const {
  Tree tree = spanning_tree(1, multipliers);
  if (tree.order.size() + 1 < joined_.size()) return std::nullopt;
  std::vector<int> others = tree.order;
  std::partial_sort(others.begin(), others.begin() + 2, others.end(),
                    [&](int a, int b) { return changed(0, a, multipliers) < changed(0, b, multipliers); });
  tree.first = others[0];
  tree.second = others[1];
  tree.value += changed(0, tree.first, multipliers) + changed(0, tree.second, multipliers);
  tree.value -= 2 * std::accumulate(multipliers.begin(), multipliers.end(), Length{0});
  return tree;
}

// Returns the bound of multipliers, in parts, and adds the edges of the bound's 1-tree to the graph; nullopt after a
// stop request.
std::optional<Length> RootBound::adopt(const std::vector<double>& multipliers) {
  std::vector<Length> whole(multipliers.size());
  const auto limit = static_cast<double>(2 * largest_ * scale_);
  for (std::size_t i = 0; i < whole.size(); ++i)
    whole[i] = std::llround(std::clamp(multipliers[i] * static_cast<double>(scale_), -limit, limit));
  const auto tree = complete_tree(whole);
  if (!tree) return std::nullopt;
  for (const int city : tree->order)
    if (tree->parent[static_cast<std::size_t>(city)] >= 0) add(city, tree->parent[static_cast<std::size_t>(city)]);
  add(0, tree->first);
  add(0, tree->second);
  if (tree->value > best_) {
    best_ = tree->value;
    best_multipliers_ = std::move(whole);
  }
  return tree->value;
}

// Finds initial multipliers. On a tree metric, the negative distance of a city from the special one is the best
// multiplier, and subgradient steps take very long to reach it, because it is about as large as the tour. So fractions
// of the distances along a spanning tree are tried, and of the distances along its long edges only, which connect
// clusters.
void RootBound::begin(Length upper) {
  constexpr double kShares[] = {1, 0.98, 0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1};
  constexpr double kShorter[] = {0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998};
  constexpr std::size_t kTried = 5;
  if (!adopt(multipliers_)) return;
  const Tree tree = spanning_tree(OneTree::kSpecial, std::vector<Length>(joined_.size(), 0));
  if (tree.order.size() < joined_.size()) return;
  std::vector<Length> lengths;
  for (const int city : tree.order) lengths.push_back(tree.above[static_cast<std::size_t>(city)]);
  std::sort(lengths.begin(), lengths.end());
  std::vector<std::pair<double, std::vector<double>>> candidates;
  for (const double shorter : kShorter) {
    const Length from =
        shorter == 0 ? 0 : lengths[static_cast<std::size_t>(shorter * static_cast<double>(lengths.size()))];
    for (const double share : kShares) {
      std::vector<double> multipliers(joined_.size(), 0);
      for (const int city : tree.order) {
        const auto i = static_cast<std::size_t>(city);
        if (tree.parent[i] < 0) continue;
        const Length excess = std::max(Length{0}, tree.above[i] - from);
        multipliers[i] = multipliers[static_cast<std::size_t>(tree.parent[i])] -
                         share * static_cast<double>(excess) / static_cast<double>(scale_);
      }
      if (stopped()) return;
      const double value = ascent_.value(multipliers);
      candidates.emplace_back(value, std::move(multipliers));
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (std::size_t k = 0; k < kTried && !reaches(upper); ++k) {
    if (candidates[k].first * static_cast<double>(scale_) <= static_cast<double>(best_)) break;
    const Length before = best_;
    if (adopt(candidates[k].second) && best_ > before) multipliers_ = candidates[k].second;
  }
}

// Returns the unit of multipliers: the mean difference between a city's longest edge and its median edge, at most the
// mean edge of a tour.
double RootBound::unit(Length upper) const {
  std::vector<std::vector<Length>> at(joined_.size());
  for (std::size_t e = 0; e < graph_.edges(); ++e)
    for (const int city : {graph_.from[e], graph_.to[e]})
      at[static_cast<std::size_t>(city)].push_back(graph_.length[e]);
  double spread = 0;
  for (std::vector<Length>& lengths : at) {
    std::sort(lengths.begin(), lengths.end());
    spread += static_cast<double>(lengths.back() - lengths[lengths.size() / 2]);
  }
  const double cities = graph_.cities, edge = std::max(std::abs(static_cast<double>(upper)), 1.0) / cities;
  return spread > 0 ? std::min(edge, spread / cities) : edge;
}

bool RootBound::improve(Length upper, int steps) {
  // Lengths of steps in units. Long steps move clusters apart, but many shorter steps must follow them.
  constexpr double kFirst = 3, kLater = 10, kLast = 0.003;
  constexpr int kRounds = 10;
  const std::size_t before = graph_.edges();
  const Length bound_before = best_;
  const bool is_first = best_ == -OneTree::kNever;
  if (is_first) begin(upper);
  const double first = is_first ? kFirst : kLater, shorter = std::pow(kLast / first, 1.0 / kRounds);
  double step = first * unit(upper);
  std::vector<double> tried = multipliers_;
  for (int i = 0; i < kRounds && !reaches(upper) && !stopped(); ++i, step *= shorter) {
    ascent_.climb(multipliers_, tried, step, step * shorter, std::max(1, steps / kRounds), static_cast<double>(upper));
    adopt(multipliers_);
  }
  return best_ > bound_before || graph_.edges() > before;
}

// Finds the heaviest edge on the tree path from a city to each other city: first upwards, then from parents to
// children.
void RootBound::measure_paths(const Tree& tree, int from, std::vector<Length>& heaviest, std::vector<int>& seen) const {
  Length heaviest_edge = -OneTree::kNever;
  for (int city = from; city >= 0; city = tree.parent[static_cast<std::size_t>(city)]) {
    heaviest[static_cast<std::size_t>(city)] = heaviest_edge;
    seen[static_cast<std::size_t>(city)] = from;
    heaviest_edge = std::max(heaviest_edge, tree.above[static_cast<std::size_t>(city)]);
  }
  for (const int city : tree.order) {
    const auto i = static_cast<std::size_t>(city);
    if (seen[i] != from) heaviest[i] = std::max(heaviest[static_cast<std::size_t>(tree.parent[i])], tree.above[i]);
  }
}

std::optional<Graph> RootBound::survivors(Length upper, std::size_t max_edges) const {
  const int n = graph_.cities;
  const auto complete = complete_tree(best_multipliers_);
  if (!complete) return std::nullopt;
  const Tree& tree = *complete;
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
  for (int i = 1; i < n && result.edges() <= max_edges; ++i) {
    if (i % kCitiesBetweenStops == 0 && stopped()) return std::nullopt;
    measure_paths(tree, i, heaviest, seen);
    for (int j = i + 1; j < n; ++j)
      if (changed(i, j, best_multipliers_) - heaviest[static_cast<std::size_t>(j)] <= slack) keep(i, j);
  }
  if (result.edges() > max_edges) return std::nullopt;
  return result;
}

}  // namespace elimina::tsp
