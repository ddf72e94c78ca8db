#include "one_tree.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace elimina::tsp {

namespace {

Length largest_of(const Graph& graph) {
  Length largest = 1;
  for (const Length length : graph.length) largest = std::max(largest, std::abs(length));
  return largest;
}

}  // namespace

Length OneTree::scale_of(const Graph& graph) {
  constexpr double kTotal = 0x1p57;
  const double total = static_cast<double>(largest_of(graph)) * graph.cities;
  Length scale = 1024;
  while (scale > 0 && total * static_cast<double>(scale) > kTotal) scale /= 2;
  return scale;
}

OneTree::OneTree(const Graph& graph, Length scale)
    : graph_(graph), scale_(scale), bound_on_multipliers_(2 * largest_of(graph) * scale_) {
  const auto n = static_cast<std::size_t>(graph.cities);
  for (std::size_t e = 0; e < graph.edges(); ++e)
    (graph.from[e] == kSpecial || graph.to[e] == kSpecial ? special_ : inner_).push_back(e);
  degree_.resize(n);
  before_.resize(n, 0);
  has_.resize(graph.edges());
  rises_.resize(graph.edges());
  for (std::vector<int>* each : {&above_, &size_, &parent_, &level_, &skip_}) each->resize(n);
  joined_.resize(n);
  edge_above_.resize(n);
}

Length OneTree::changed(std::size_t e) const {
  return graph_.length[e] * scale_ + multipliers_[static_cast<std::size_t>(graph_.from[e])] +
         multipliers_[static_cast<std::size_t>(graph_.to[e])];
}

int OneTree::root(int city) const {
  while (above_[static_cast<std::size_t>(city)] >= 0) city = above_[static_cast<std::size_t>(city)];
  return city;
}

// Adds an edge to the tree; returns false if it would close a cycle.
bool OneTree::add_edge(std::size_t e) {
  auto a = static_cast<std::size_t>(root(graph_.from[e])), b = static_cast<std::size_t>(root(graph_.to[e]));
  if (a == b) return false;
  if (size_[a] > size_[b]) std::swap(a, b);
  above_[a] = static_cast<int>(b);
  size_[b] += size_[a];
  joined_[a] = tree_.size();
  tree_.push_back(e);
  return true;
}

// Builds the spanning tree. Required edges come first: the heaviest edge on the path between two cities is required
// only if all edges of the path are. Returns false if the required edges have a cycle, or the open ones do not connect
// the rest.
bool OneTree::span(const std::vector<Use>& use) {
  std::fill(above_.begin(), above_.end(), -1);
  std::fill(size_.begin(), size_.end(), 1);
  std::fill(joined_.begin(), joined_.end(), kNone);
  tree_.clear();
  order_.clear();
  for (const std::size_t e : inner_) {
    if (use[e] == Use::open) order_.emplace_back(changed(e), e);
    if (use[e] == Use::in && !add_edge(e)) return false;
  }
  std::sort(order_.begin(), order_.end());
  const auto enough = static_cast<std::size_t>(graph_.cities - 2);
  for (std::size_t i = 0; i < order_.size() && tree_.size() < enough; ++i) add_edge(order_[i].second);
  return tree_.size() == enough;
}

bool OneTree::close(const std::vector<Use>& use) {
  std::size_t chosen[2] = {kNone, kNone}, count = 0;
  for (const std::size_t e : special_)
    if (use[e] == Use::in) {
      if (count == 2) return false;
      chosen[count++] = e;
    }
  may_replace_ = count < 2;
  third_ = kNever;
  std::vector<std::pair<Length, std::size_t>> open;
  for (const std::size_t e : special_)
    if (use[e] == Use::open) open.emplace_back(changed(e), e);
  std::sort(open.begin(), open.end());
  std::size_t i = 0;
  for (; i < open.size() && count < 2; ++i) chosen[count++] = open[i].second;
  if (count < 2) return false;
  second_ = chosen[1];
  if (i < open.size()) third_ = open[i].first;
  for (const std::size_t e : chosen) tree_.push_back(e);
  return true;
}

bool OneTree::build(const std::vector<Use>& use, const std::vector<Length>& multipliers) {
  multipliers_ = multipliers;
  use_ = use;
  if (!span(use) || !close(use)) return false;
  std::fill(degree_.begin(), degree_.end(), 0);
  std::fill(has_.begin(), has_.end(), 0);
  value_ = -2 * std::accumulate(multipliers.begin(), multipliers.end(), Length{0});
  for (const std::size_t e : tree_) {
    value_ += changed(e);
    has_[e] = 1;
    ++degree_[static_cast<std::size_t>(graph_.from[e])];
    ++degree_[static_cast<std::size_t>(graph_.to[e])];
  }
  return true;
}

// Positions in `tree_` increase along the path from a city to the root of the union forest, so the last edge visited
// has the largest position: it is the heaviest one.
std::size_t OneTree::heaviest_between(int from, int to) const {
  auto a = static_cast<std::size_t>(from), b = static_cast<std::size_t>(to);
  std::size_t heaviest = 0;
  while (a != b) {
    if (joined_[a] > joined_[b]) std::swap(a, b);
    heaviest = joined_[a];
    a = static_cast<std::size_t>(above_[a]);
  }
  return tree_[heaviest];
}

void OneTree::find_entering() {
  for (const auto& [length, e] : order_) {
    if (has_[e]) continue;
    const std::size_t other = heaviest_between(graph_.from[e], graph_.to[e]);
    rises_[e] = use_[other] == Use::in ? kNever : length - changed(other);
  }
  for (const std::size_t e : special_)
    if (!has_[e]) rises_[e] = may_replace_ ? changed(e) - changed(second_) : kNever;
}

// Roots the spanning tree: the parent of a city is the city before it in a walk through the tree.
void OneTree::hang() {
  const auto n = static_cast<std::size_t>(graph_.cities);
  std::vector<std::size_t> first(n + 1, 0), list(2 * (n - 2));
  const auto ends = [&](auto f) {
    for (std::size_t i = 0; i + 2 < tree_.size(); ++i)
      for (const int city : {graph_.from[tree_[i]], graph_.to[tree_[i]]}) f(static_cast<std::size_t>(city), tree_[i]);
  };
  ends([&](std::size_t city, std::size_t) { ++first[city + 1]; });
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::size_t> fill(first.begin(), first.end() - 1);
  ends([&](std::size_t city, std::size_t e) { list[fill[city]++] = e; });
  const int top = kSpecial == 0 ? 1 : 0;
  std::vector<int> walk{top};
  parent_[static_cast<std::size_t>(top)] = -1;
  level_[static_cast<std::size_t>(top)] = 0;
  for (std::size_t i = 0; i < walk.size(); ++i) {
    const auto city = static_cast<std::size_t>(walk[i]);
    for (std::size_t k = first[city]; k < first[city + 1]; ++k) {
      const int other = graph_.from[list[k]] == walk[i] ? graph_.to[list[k]] : graph_.from[list[k]];
      if (other == parent_[city]) continue;
      parent_[static_cast<std::size_t>(other)] = walk[i];
      level_[static_cast<std::size_t>(other)] = level_[city] + 1;
      edge_above_[static_cast<std::size_t>(other)] = list[k];
      walk.push_back(other);
    }
  }
}

// Finds the shortest replacement of each edge of the tree: edges come by length, and tree edges with a replacement are
// skipped from then on.
void OneTree::find_leaving() {
  hang();
  std::iota(skip_.begin(), skip_.end(), 0);
  const auto up = [&](int city) {
    while (skip_[static_cast<std::size_t>(city)] != city) {
      int& next = skip_[static_cast<std::size_t>(city)];
      next = skip_[static_cast<std::size_t>(next)];
      city = next;
    }
    return city;
  };
  for (const auto& [length, e] : order_) {
    if (has_[e]) continue;
    int a = up(graph_.from[e]), b = up(graph_.to[e]);
    while (a != b) {
      if (level_[static_cast<std::size_t>(a)] < level_[static_cast<std::size_t>(b)]) std::swap(a, b);
      const auto low = static_cast<std::size_t>(a);
      rises_[edge_above_[low]] = length - changed(edge_above_[low]);
      skip_[low] = parent_[low];
      a = up(a);
    }
  }
  for (std::size_t i = tree_.size() - 2; i < tree_.size(); ++i)
    rises_[tree_[i]] = third_ == kNever ? kNever : third_ - changed(tree_[i]);
}

const std::vector<Length>& OneTree::rises() {
  std::fill(rises_.begin(), rises_.end(), kNever);
  find_entering();
  find_leaving();
  return rises_;
}

void OneTree::move(Length gap, double share, std::vector<Length>& multipliers) {
  double norm = 0;
  for (const int degree : degree_) norm += (degree - 2) * (degree - 2);
  const double step = share * static_cast<double>(gap) / norm;
  for (std::size_t i = 0; i < multipliers.size(); ++i) {
    const double by = step * (0.7 * (degree_[i] - 2) + 0.3 * (before_[i] - 2));
    const double to = static_cast<double>(multipliers[i]) + by, limit = static_cast<double>(bound_on_multipliers_);
    multipliers[i] =
        std::clamp(static_cast<Length>(std::clamp(to, -limit, limit)), -bound_on_multipliers_, bound_on_multipliers_);
  }
  before_ = degree_;
}

bool OneTree::ascend(const std::vector<Use>& use, Length upper, int steps, std::vector<Length>& multipliers) {
  const int patience = 4 + steps / 40;
  constexpr double kLeastShare = 1.0 / 256;
  std::vector<Length> best = multipliers, tried = multipliers;
  Length bound = -kNever;
  double share = 1;
  bool is_best = false;
  std::fill(before_.begin(), before_.end(), 2);
  for (int stale = 0; steps > 0 && share > kLeastShare; --steps) {
    if (!build(use, tried)) return false;
    is_best = value_ > bound;
    if (is_best) {
      stale = 0;
      bound = value_;
      best = tried;
    } else if (++stale == patience) {
      stale = 0;
      share /= 2;
    }
    if (bound > upper || std::all_of(degree_.begin(), degree_.end(), [](int degree) { return degree == 2; })) break;
    // Steps are limited, because an upper bound may be far away.
    const Length near = std::max(std::abs(value_) / 20, scale_);
    move(std::clamp(upper - value_, Length{1}, near), share, tried);
  }
  multipliers = best;
  return is_best || build(use, best);
}

}  // namespace elimina::tsp
