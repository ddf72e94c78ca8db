#include "network/neighbourhood.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace elimina::network {

namespace {

// A graph from which vertices are eliminated or taken out. The neighbours of each vertex are a row of bits.
class Shrinking {
 public:
  Shrinking(std::vector<double> logs)
      : words_((logs.size() + 63) / 64), bits_(words_ * logs.size()), logs_(std::move(logs)), weight_(logs_),
        degree_(logs_.size()) {}

  void connect(int a, int b) {
    std::uint64_t& word = row(a)[b / 64];
    const std::uint64_t bit = std::uint64_t{1} << (b % 64);
    if (word & bit) return;
    weight_[a] += logs_[b];
    ++degree_[a];
    word |= bit;
  }

  // Logarithm of the number of cells of the table that is made when a vertex is eliminated.
  double weight(int v) const { return weight_[v]; }

  int degree(int v) const { return degree_[v]; }

  std::vector<int> neighbours(int v) const {
    std::vector<int> result;
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t bits = row(v)[w]; bits; bits &= bits - 1)
        result.push_back(static_cast<int>(w * 64) + std::countr_zero(bits));
    return result;
  }

  void take_out(int v) {
    for (const int u : neighbours(v)) {
      row(u)[v / 64] &= ~(std::uint64_t{1} << (v % 64));
      weight_[u] -= logs_[v];
      --degree_[u];
    }
  }

  std::vector<int> eliminate(int v) {
    const std::vector<int> clique = neighbours(v);
    take_out(v);
    for (const int a : clique)
      for (const int b : clique)
        if (a != b) connect(a, b);
    return clique;
  }

 private:
  std::uint64_t* row(int v) { return bits_.data() + words_ * static_cast<std::size_t>(v); }
  const std::uint64_t* row(int v) const { return bits_.data() + words_ * static_cast<std::size_t>(v); }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
  std::vector<double> logs_, weight_;
  std::vector<int> degree_;
};

}  // namespace

Neighbourhoods::Neighbourhoods(const View& view) : neighbours_(view.sizes.size()), position_(view.sizes.size(), -1) {
  for (const int size : view.sizes) logs_.push_back(std::log2(size));
  for (const View::Function& function : view.functions)
    for (const auto& [a, _] : function.axes)
      for (const auto& [b, __] : function.axes)
        if (a != b) neighbours_[a].push_back(b);
  for (auto& list : neighbours_) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

// Draws `variables` variables: a random one, then neighbours of drawn ones. If no neighbour remains, another random
// variable is drawn.
std::vector<Var> Neighbourhoods::connected(std::size_t variables, std::mt19937_64& random) {
  std::vector<Var> region, waiting;
  const std::size_t count = std::min(variables, logs_.size());
  constexpr int waits = -2;
  const auto add = [&](Var v) {
    if (position_[v] != -1) return;
    position_[v] = waits;
    waiting.push_back(v);
  };
  while (region.size() < count) {
    if (waiting.empty()) {
      auto v = static_cast<Var>(random() % logs_.size());
      while (position_[v] != -1) v = (v + 1) % static_cast<Var>(logs_.size());
      add(v);
    }
    std::swap(waiting[random() % waiting.size()], waiting.back());
    const Var v = waiting.back();
    waiting.pop_back();
    position_[v] = static_cast<int>(region.size());
    region.push_back(v);
    for (const Var u : neighbours_[v]) add(u);
  }
  for (const Var v : waiting) position_[v] = -1;
  return region;
}

Neighbourhood Neighbourhoods::draw(std::size_t variables, double cells, std::mt19937_64& random) {
  const std::vector<Var> region = connected(variables, random);
  std::vector<double> logs;
  for (const Var v : region) logs.push_back(logs_[v]);
  Shrinking graph(std::move(logs));
  for (const Var v : region)
    for (const Var u : neighbours_[v])
      if (position_[u] >= 0) graph.connect(position_[v], position_[u]);
  Neighbourhood drawn;
  const double log_cells = std::log2(cells) + 1e-9;
  std::vector<int> remaining(region.size());
  for (std::size_t i = 0; i < remaining.size(); ++i) remaining[i] = static_cast<int>(i);
  std::vector<double> luck;
  for (std::size_t i = 0; i < region.size(); ++i) luck.push_back(static_cast<double>(random() >> 11));
  while (!remaining.empty()) {
    auto chosen = std::min_element(remaining.begin(), remaining.end(),
                                   [&](int a, int b) { return graph.weight(a) < graph.weight(b); });
    const bool is_small = graph.weight(*chosen) <= log_cells;
    if (!is_small)
      chosen = std::max_element(remaining.begin(), remaining.end(),
                                [&](int a, int b) { return graph.degree(a) * luck[a] < graph.degree(b) * luck[b]; });
    const int v = *chosen;
    *chosen = remaining.back();
    remaining.pop_back();
    if (!is_small) {
      graph.take_out(v);
      position_[region[v]] = -1;
      continue;
    }
    drawn.order.push_back(region[v]);
    drawn.separators.emplace_back();
    for (const int u : graph.eliminate(v)) drawn.separators.back().push_back(region[u]);
  }
  // Variables that were removed keep their values, so they are in no separator.
  for (std::vector<Var>& separator : drawn.separators)
    std::erase_if(separator, [&](Var u) { return position_[u] < 0; });
  for (const Var v : region) position_[v] = -1;
  return drawn;
}

}  // namespace elimina::network
