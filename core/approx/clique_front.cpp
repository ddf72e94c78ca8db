#include "approx/clique_front.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace elimina::approx {

namespace {

// Returns the entropy of a distribution, in nats.
double entropy(std::span<const double> belief) {
  // The smallest normal number stands for 0, whose logarithm is infinite.
  constexpr double least = std::numeric_limits<double>::min();
  double sum = 0;
  for (const double share : belief) sum -= share * std::log(std::max(share, least));
  return sum;
}

}  // namespace

int CliqueFront::add(Scope scope, Belief belief, int source) {
  beliefs_.push_back(std::move(belief));
  sources_.push_back(source);
  return add_clique(std::move(scope));
}

void CliqueFront::absorb() {
  for (int number = 0; number < size(); ++number)
    if (is_alive(number)) absorb(number);
}

void CliqueFront::absorb(int clique) {
  for (const int other : neighbours(clique)) {
    if (has_all(scope(other), scope(clique))) return discard(clique, other);
  }
}

void CliqueFront::discard(int clique, int heir) {
  remove_clique(clique, heir);
  beliefs_[clique] = {};
}

CliqueFront::Belief CliqueFront::marginal_of(int clique, std::span<const int> axes) const {
  return marginal(sizes_, scope(clique), beliefs_[clique].data(), axes);
}

double CliqueFront::price(double information, int variable) const {
  // The price of a removal is its loss of information, relative to the logarithm of the variable's number of states.
  // Prices that differ by rounding alone count as equal, so that the order does not depend on the machine.
  constexpr double steps = 1e10;
  return std::round(steps * information / std::log(double(sizes_[variable]))) / steps;
}

// Returns the mutual information of two sets of a clique's variables, given the clique's other variables.
double CliqueFront::information(int clique, std::span<const int> first, std::span<const int> second) const {
  if (second.empty()) return 0;
  Scope inner, outer, rest;
  for (const int v : scope(clique)) {
    const bool is_first = has(first, v), is_second = has(second, v);
    if (!is_first) outer.push_back(v);
    if (!is_second) inner.push_back(v);
    if (!is_first && !is_second) rest.push_back(v);
  }
  look(i64(beliefs_[clique].size()));
  const Belief without_second = marginal_of(clique, inner);
  const double inner_entropy = entropy(without_second);
  const double rest_entropy = entropy(marginal(sizes_, inner, without_second.data(), rest));
  return std::max(0.0, entropy(marginal_of(clique, outer)) - entropy(beliefs_[clique]) + inner_entropy - rest_entropy);
}

void CliqueFront::separate(int variable, i64 most_cells) {
  struct Removal {
    double price;
    int variable, clique;
    auto operator<=>(const Removal&) const = default;
  };
  std::map<std::pair<int, int>, double> prices;  // price of each edge from `variable`, by clique and other end
  std::vector<int> members;
  for (int number = 0; number < size(); ++number)
    if (is_alive(number) && has(scope(number), variable)) members.push_back(number);
  for (;;) {
    std::map<int, std::vector<int>> cliques;
    for (const int number : members)
      for (const int other : this->scope(number)) cliques[other].push_back(number);
    Scope scope;
    for (const auto& [other, numbers] : cliques) scope.push_back(other);
    if (cells_of(scope, sizes_) <= most_cells) return;
    Removal best{std::numeric_limits<double>::infinity(), 0, -1};
    for (const auto& [other, numbers] : cliques) {
      if (other == variable || numbers.size() > 1) continue;
      const auto [entry, is_new] = prices.try_emplace({numbers[0], other});
      if (is_new) entry->second = price(information(numbers[0], std::span(&variable, 1), std::span(&other, 1)), other);
      const Removal removal{entry->second, other, numbers[0]};
      if (best.clique < 0 || removal < best) best = removal;
    }
    const int first = size();
    split(best.clique, variable, best.variable);
    for (int number = first; number < size(); ++number) members.push_back(number);
    std::erase_if(members, [&](int number) { return !is_alive(number) || !has(this->scope(number), variable); });
  }
}

// Removes the edge between variables `first` and `second`: splits the clique into one without `first` and one without
// `second`.
void CliqueFront::split(int clique, int first, int second) {
  divergence_ += information(clique, std::span(&first, 1), std::span(&second, 1));
  const int origin = sources_[clique];
  const auto add_without = [&](int variable) {
    Scope rest = without(scope(clique), variable);
    Belief belief = marginal_of(clique, rest);
    return add(std::move(rest), std::move(belief), origin);
  };
  const int with_first = add_without(second), with_second = add_without(first);
  const std::vector<int> around = neighbours(clique);
  for (const int other : around) link(other, has(scope(other), first) ? with_first : with_second);
  discard(clique);
  link(with_first, with_second);
  absorb(with_first);
  absorb(with_second);
}

void CliqueFront::shorten(std::span<const int> path, std::size_t position, std::span<const int> needed) {
  struct Removal {
    double price;
    int variable, behind;
    auto operator<=>(const Removal&) const = default;
  };
  const int clique = path[position];
  Removal best{std::numeric_limits<double>::infinity(), 0, -1};
  const auto consider = [&](int other) {
    const Scope between = separator(clique, other);
    Scope rest;
    std::ranges::set_difference(scope(clique), between, std::back_inserter(rest));
    for (const int v : between) {
      if (has(needed, v)) continue;
      const Removal removal{price(information(clique, std::span(&v, 1), rest), v), v, other};
      if (best.behind < 0 || removal < best) best = removal;
    }
  };
  if (position > 0) consider(path[position - 1]);
  consider(path[position + 1]);
  drop(best.variable, clique, best.behind);
}

// Removes a variable from a clique, and from all cliques that are reached from there through cliques with the variable.
// The edge to `behind` is not crossed.
void CliqueFront::drop(int variable, int start, int behind) {
  std::vector<std::pair<int, int>> reached{{start, behind}};  // pairs of a clique and the clique before it
  for (std::size_t position = 0; position < reached.size(); ++position) {
    const auto [number, parent] = reached[position];
    for (const int other : neighbours(number))
      if (other != parent && has(scope(other), variable)) reached.emplace_back(other, number);
  }
  std::ranges::reverse(reached);
  for (const auto& [number, parent] : reached) {
    const Scope between = separator(number, parent);
    Scope others;
    std::ranges::set_difference(scope(number), between, std::back_inserter(others));
    divergence_ += information(number, std::span(&variable, 1), others);
    Scope rest = without(scope(number), variable);
    beliefs_[number] = marginal_of(number, rest);
    set_scope(number, std::move(rest));
  }
  for (const auto& [number, parent] : reached) absorb(number);
}

}  // namespace elimina::approx
