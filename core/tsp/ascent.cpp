#include "ascent.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "stop.hpp"

namespace elimina::tsp {

namespace {

constexpr int kDigit = 11, kDigits = 3;

std::size_t index(int city) { return static_cast<std::size_t>(city); }

// Returns the key of a number; keys have the order of their numbers. The last bits are lost, so the tree may be longer
// than a minimum tree by a factor of 1 + 10^-7.
std::uint32_t key(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return bits & 0x80000000U ? ~bits : bits | 0x80000000U;
}

}  // namespace

Ascent::Ascent(const Graph& graph, std::vector<int> site)
    : graph_(graph), site_(std::move(site)), above_(site_.size()), degree_(site_.size()), before_(site_.size(), 2),
      direction_(site_.size()) {
  for (const int k : site_) {
    cities_at_.resize(std::max(cities_at_.size(), index(k) + 1), 0);
    ++cities_at_[index(k)];
  }
}

int Ascent::root(int city) {
  while (above_[index(city)] != city) city = above_[index(city)] = above_[index(above_[index(city)])];
  return city;
}

// Sorts the edges by a stable radix sort: among edges of equal length, those of the tour come first. If many edges have
// equal lengths, the degrees in the tree are then smaller.
void Ascent::sort() {
  constexpr std::uint32_t kBuckets = 1U << kDigit;
  std::array<std::array<std::uint32_t, kBuckets>, kDigits> starts{};
  const auto digit = [](std::uint32_t key, int d) { return key >> (d * kDigit) & (kBuckets - 1); };
  for (const auto& [key, e] : order_)
    for (int d = 0; d < kDigits; ++d) ++starts[static_cast<std::size_t>(d)][digit(key, d)];
  sorted_.resize(order_.size());
  for (int d = 0; d < kDigits; ++d) {
    auto& of_digit = starts[static_cast<std::size_t>(d)];
    std::exclusive_scan(of_digit.begin(), of_digit.end(), of_digit.begin(), 0U);
    for (const auto& each : order_) sorted_[of_digit[digit(each.first, d)]++] = each;
    std::swap(order_, sorted_);
  }
}

double Ascent::value(const std::vector<double>& multipliers) {
  const auto changed = [&](std::size_t e) {
    return static_cast<double>(graph_.length[e]) + multipliers[index(graph_.from[e])] +
           multipliers[index(graph_.to[e])];
  };
  std::array<std::pair<double, std::size_t>, 2> at_special{};
  at_special.fill({std::numeric_limits<double>::infinity(), kNone});
  order_.clear();
  for (std::size_t e = 0; e < graph_.edges(); ++e) {
    const double length = changed(e);
    if (graph_.from[e] != OneTree::kSpecial && graph_.to[e] != OneTree::kSpecial) {
      order_.emplace_back(key(length), static_cast<std::uint32_t>(e));
    } else if (length < at_special[1].first) {
      at_special[1] = {length, e};
      if (length < at_special[0].first) std::swap(at_special[0], at_special[1]);
    }
  }
  sort();
  std::iota(above_.begin(), above_.end(), 0);
  std::fill(degree_.begin(), degree_.end(), 0);
  double result = -2 * std::accumulate(multipliers.begin(), multipliers.end(), 0.0);
  const auto add_edge = [&](std::size_t e) {
    result += changed(e);
    ++degree_[index(graph_.from[e])];
    ++degree_[index(graph_.to[e])];
  };
  int missing = graph_.cities - 2;
  for (std::size_t i = 0; i < order_.size() && missing > 0; ++i) {
    const std::size_t e = order_[i].second;
    const int a = root(graph_.from[e]), b = root(graph_.to[e]);
    if (a == b) continue;
    above_[index(a)] = b;
    add_edge(e);
    --missing;
  }
  if (missing > 0 || at_special[1].second == kNone) throw std::invalid_argument("the edges do not connect all cities");
  for (const auto& [length, e] : at_special) add_edge(e);
  return result;
}

// Sets the step of each city from its degree and a share of its previous degree; cities at the same site get equal
// steps. Returns false if the 1-tree is a tour, or all degrees are balanced.
bool Ascent::find_direction() {
  constexpr double kBefore = 0.3;
  sums_at_site_.assign(cities_at_.size(), 0);
  std::vector<double>& sum = sums_at_site_;
  double change = 0;
  for (std::size_t i = 0; i < site_.size(); ++i)
    sum[index(site_[i])] += (1 - kBefore) * (degree_[i] - 2) + kBefore * (before_[i] - 2);
  for (std::size_t i = 0; i < site_.size(); ++i) {
    direction_[i] = sum[index(site_[i])] / cities_at_[index(site_[i])];
    change += std::abs(direction_[i]);
  }
  before_ = degree_;
  return change > 0;
}

void Ascent::climb(std::vector<double>& best, std::vector<double>& tried, double first, double last, int steps,
                   double enough) {
  double best_value = value(best);
  const double factor = std::pow(last / first, 1.0 / steps);
  double step = first;
  for (int i = 0; i < steps && best_value <= enough; ++i, step *= factor) {
    const double tried_value = value(tried);
    if (tried_value > best_value) {
      best_value = tried_value;
      best = tried;
    }
    if (!find_direction() || stopped()) break;
    for (std::size_t k = 0; k < tried.size(); ++k) tried[k] += step * direction_[k];
  }
}

}  // namespace elimina::tsp
