#include "network/neighbourhood.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace elimina::network {

namespace {

// A graph whose vertices are eliminated or removed, with a row of bits for each.
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

  // Logarithm of the number of cells of the table that eliminates a vertex.
  double weight(int v) const { return weight_[v]; }

  int degree(int v) const { return degree_[v]; }

  std::vector<int> neighbours(int v) const {
    std::vector<int> found;
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t left = row(v)[w]; left; left &= left - 1)
        found.push_back(static_cast<int>(w * 64) + std::countr_zero(left));
    return found;
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

Neighbourhoods::Neighbourhoods(const View& view) : neighbours_(view.sizes.size()), place_(view.sizes.size(), -1) {
  for (const int size : view.sizes) logs_.push_back(std::log2(size));
  for (const View::Function& function : view.functions)
    for (const auto& [a, _] : function.axes)
      for (const auto& [b, __] : function.axes)
        if (a != b) neighbours_[a].push_back(b);
  for (auto& own : neighbours_) {
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
  }
}

// Draws connected variables around a random one, and around further ones if its component is too small.
std::vector<Var> Neighbourhoods::connected(std::size_t variables, std::mt19937_64& random) {
  std::vector<Var> found, waiting;
  const std::size_t wanted = std::min(variables, logs_.size());
  constexpr int waits = -2;
  const auto add = [&](Var v) {
    if (place_[v] != -1) return;
    place_[v] = waits;
    waiting.push_back(v);
  };
  while (found.size() < wanted) {
    if (waiting.empty()) {
      auto v = static_cast<Var>(random() % logs_.size());
      while (place_[v] != -1) v = (v + 1) % static_cast<Var>(logs_.size());
      add(v);
    }
    std::swap(waiting[random() % waiting.size()], waiting.back());
    const Var v = waiting.back();
    waiting.pop_back();
    place_[v] = static_cast<int>(found.size());
    found.push_back(v);
    for (const Var u : neighbours_[v]) add(u);
  }
  for (const Var v : waiting) place_[v] = -1;
  return found;
}

Neighbourhood Neighbourhoods::draw(std::size_t variables, double cells, std::mt19937_64& random) {
  const std::vector<Var> part = connected(variables, random);
  std::vector<double> logs;
  for (const Var v : part) logs.push_back(logs_[v]);
  Shrinking graph(std::move(logs));
  for (const Var v : part)
    for (const Var u : neighbours_[v])
      if (place_[u] >= 0) graph.connect(place_[v], place_[u]);
  Neighbourhood drawn;
  const double most = std::log2(cells) + 1e-9;
  std::vector<int> left(part.size());
  for (std::size_t i = 0; i < left.size(); ++i) left[i] = static_cast<int>(i);
  std::vector<double> luck;
  for (std::size_t i = 0; i < part.size(); ++i) luck.push_back(static_cast<double>(random() >> 11));
  while (!left.empty()) {
    auto chosen =
        std::min_element(left.begin(), left.end(), [&](int a, int b) { return graph.weight(a) < graph.weight(b); });
    const bool is_small = graph.weight(*chosen) <= most;
    if (!is_small)
      chosen = std::max_element(left.begin(), left.end(),
                                [&](int a, int b) { return graph.degree(a) * luck[a] < graph.degree(b) * luck[b]; });
    const int v = *chosen;
    *chosen = left.back();
    left.pop_back();
    if (!is_small) {
      graph.take_out(v);
      place_[part[v]] = -1;
      continue;
    }
    drawn.order.push_back(part[v]);
    drawn.separators.emplace_back();
    for (const int u : graph.eliminate(v)) drawn.separators.back().push_back(part[u]);
  }
  // Variables removed later keep their values, so they are in no separator.
  for (std::vector<Var>& separator : drawn.separators) std::erase_if(separator, [&](Var u) { return place_[u] < 0; });
  for (const Var v : part) place_[v] = -1;
  return drawn;
}

}  // namespace elimina::network
