#include "approx/tree_builder.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "stop.hpp"

namespace elimina::approx {

namespace {

// Bytes of a cell of an interface: an 8-byte number for each direction.
constexpr double kMessageBytes = 16;

// Bytes of a tree's cell during calibration: 8 for the belief, and 8 for the cells of a front or of messages.
constexpr double kCalibratedBytes = 16;

// Bytes of a clique without its table.
constexpr double kCliqueBytes = 128;

Scope shared_part(std::span<const int> scope, std::span<const int> wanted) { return shared(wanted, scope); }

}  // namespace

int GrowingTree::add_front(Scope scope) {
  const int number = add_clique(Scope());
  is_front_.push_back(true);
  heirs_.push_back(number);
  ++fronts_;
  widen(number, std::move(scope));
  return number;
}

void GrowingTree::widen(int number, Scope wider) {
  for (const int v : wider) {
    std::vector<int>& holders = holders_[v];
    const auto position = std::ranges::lower_bound(holders, number);
    if (position == holders.end() || *position != number) holders.insert(position, number);
  }
  set_scope(number, std::move(wider));
}

void GrowingTree::leave_front(int number) {
  if (!is_front_[number]) return;
  for (const int v : scope(number)) std::erase(holders_[v], number);
  is_front_[number] = false;
  --fronts_;
}

void GrowingTree::replace(int number, int heir) {
  leave_front(number);
  remove_clique(number, heir);
  heirs_[number] = heir;
}

int GrowingTree::heir_of(int number) {
  while (heirs_[number] != number) {
    heirs_[number] = heirs_[heirs_[number]];
    number = heirs_[number];
  }
  return number;
}

void GrowingTree::begin(const CliqueFront& front, std::span<const int> positions, int input, Interface& interface) {
  std::vector<int> numbers(front.size(), -1);
  interface.targets.resize(interface.cliques.size());
  for (int number = 0; number < front.size(); ++number)
    if (front.is_alive(number)) interface.targets[positions[number]] = numbers[number] = add_front(front.scope(number));
  for (int number = 0; number < front.size(); ++number)
    for (const int other : front.neighbours(number)) link(numbers[number], numbers[other]);
  inputs_.push_back(input);
}

void GrowingTree::merge(const GrowingTree& other, std::vector<LinkedTree>& trees) {
  const int shift = size();
  for (int number = 0; number < other.size(); ++number) {
    add_clique(other.scope(number));
    if (!other.is_alive(number)) remove_clique(shift + number);
    is_front_.push_back(other.is_front_[number]);
    heirs_.push_back(shift + other.heirs_[number]);
    if (!other.is_front_[number]) continue;
    for (const int v : other.scope(number)) *std::ranges::find(holders_[v], number) += shift;
  }
  for (int number = 0; number < other.size(); ++number)
    for (const int neighbour : other.neighbours(number))
      if (neighbour > number) link(shift + number, shift + neighbour);
  fronts_ += other.fronts_;
  for (const int input : other.inputs_) {
    for (int& target : trees[input].output->targets) target += shift;
    inputs_.push_back(input);
  }
  for (const auto& [factor, clique] : other.factors_) factors_.push_back({factor, shift + clique});
  for (const auto& [variable, clique] : other.eliminated_) eliminated_.push_back({variable, shift + clique});
  for (const auto& [clique, parent] : other.hanging_) hanging_.emplace_back(shift + clique, shift + parent);
}

void GrowingTree::eliminate(int variable, const Scope& scope) {
  const std::vector<int> members = holders_[variable];
  const int whole = add_clique(scope);
  is_front_.push_back(false);
  heirs_.push_back(whole);
  for (const int number : members) replace(number, whole);
  std::vector<int> around = neighbours(whole);
  for (const int number : around)
    if (has_all(scope, this->scope(number))) replace(number, whole);
  eliminated_.push_back({variable, whole});
  Scope rest = without(scope, variable);
  around = neighbours(whole);
  const auto wider = std::ranges::find_if(around, [&](int number) { return has_all(this->scope(number), rest); });
  if (wider == around.end() && rest.empty() && around.empty()) return;
  const int heir = wider == around.end() ? add_front(std::move(rest)) : *wider;
  for (const int number : around) {
    unlink(whole, number);
    if (number != heir) link(heir, number);
  }
  hanging_.emplace_back(whole, heir);
}

void GrowingTree::widen_path(std::span<const int> path, std::span<const Scope> needs) {
  std::vector<int> ends;
  for (std::size_t position = 0; position < needs.size(); ++position) {
    if (has_all(needs[position], scope(path[position]))) {
      widen(path[position], needs[position]);
      ends.push_back(path[position]);
    } else {
      ends.push_back(add_front(needs[position]));
      link(ends.back(), path[position]);
    }
  }
  ends.push_back(path.back());
  for (std::size_t position = 0; position + 1 < path.size(); ++position) {
    unlink(path[position], path[position + 1]);
    link(ends[position], ends[position + 1]);
  }
}

LinkedTree GrowingTree::complete(std::span<const i64> sizes, int rank, std::vector<LinkedTree>& trees,
                                 std::vector<int>& positions) {
  for (const auto& [clique, parent] : hanging_) link(clique, heir_of(parent));
  LinkedTree tree{
      RootedCliques(*this, sizes, positions), rank, std::move(factors_), std::move(eliminated_), {}, {}, {}};
  for (auto* members : {&tree.factors, &tree.eliminated})
    for (auto& [number, clique] : *members) clique = positions[heir_of(clique)];
  tree.inputs = std::move(inputs_);
  for (const int input : tree.inputs)
    for (int& target : trees[input].output->targets) target = positions[heir_of(target)];
  return tree;
}

TreeBuilder::TreeBuilder(LinkedTrees& result)
    : result_(result), factors_(*result.factors_), sizes_(result.sizes_), homes_(sizes_.size()),
      holders_(sizes_.size()) {}

void TreeBuilder::build() {
  for (rank_ = 0; rank_ < int(sizes_.size()); ++rank_) {
    look(0);
    for (const int factor : factors_.bucket(rank_)) add(factor);
    eliminate(rank_);
  }
}

// Puts a factor into a clique of the front.
void TreeBuilder::add(int factor) {
  const std::span scope = factors_.scope(factor);
  Growing tree = home(scope);
  Scope held;
  for (const int v : scope)
    if (homes_[v]) held.push_back(v);
  int clique;
  if (held.empty()) {
    clique = tree->add_front(Scope(scope.begin(), scope.end()));
  } else {
    clique = gather(tree, held);
    if (has_all(scope, tree->scope(clique))) {
      tree->widen(clique, Scope(scope.begin(), scope.end()));
    } else if (held.size() < scope.size()) {
      const int wider = tree->add_front(Scope(scope.begin(), scope.end()));
      tree->link(wider, clique);
      clique = wider;
    }
  }
  for (const int v : scope) homes_[v] = tree;
  tree->add_factor(factor, clique);
}

// Merges the growing trees that contain variables of `scope`, and returns the merged tree; a new tree if there are
// none.
TreeBuilder::Growing TreeBuilder::home(std::span<const int> scope) {
  std::vector<Growing> trees;
  for (const int v : scope)
    if (homes_[v] && std::ranges::find(trees, homes_[v]) == trees.end()) trees.push_back(homes_[v]);
  if (trees.empty()) return std::make_shared<GrowingTree>(holders_);
  // The largest tree stays, so that each clique moves only a few times.
  const Growing heir = *std::ranges::max_element(trees, {}, [](const Growing& tree) { return tree->size(); });
  for (const Growing& other : trees) {
    if (other == heir) continue;
    heir->merge(*other, result_.trees_);
    move(*other, heir);
  }
  return heir;
}

void TreeBuilder::move(const GrowingTree& cliques, const Growing& home) {
  for (int number = 0; number < cliques.size(); ++number)
    if (cliques.is_front(number))
      for (const int v : cliques.scope(number)) homes_[v] = home;
}

// Returns a clique of the front with these variables. If that clique would be too large, `tree` becomes the next tree,
// and the clique belongs to it.
int TreeBuilder::gather(Growing& tree, std::span<const int> shared) {
  for (;;) {
    std::vector<int> candidates;
    for (const int v : shared) candidates.insert(candidates.end(), holders_[v].begin(), holders_[v].end());
    const int start = nearest(*tree, candidates, shared);
    const auto missing = std::ranges::find_if(shared, [&](int v) { return !has(tree->scope(start), v); });
    if (missing == shared.end()) return start;
    const std::vector<int> way = path(*tree, start, *missing, holders_[*missing].front());
    const std::vector<Scope> scopes = needs(*tree, way, shared, *missing);
    if (oversized(scopes) < 0) {
      tree->widen_path(way, scopes);
    } else {
      Closed closed = close(*tree);
      shorten(closed.front, shared);
      tree = follow(closed);
    }
  }
}

// Removes dependences from a front. Consider the clique with most of the variables `shared`. The removals end once this
// clique has all of these variables, or once another one of them can be carried to it without making any clique too
// large.
void TreeBuilder::shorten(CliqueFront& front, std::span<const int> shared) {
  for (;;) {
    std::vector<int> candidates;
    for (int number = 0; number < front.size(); ++number)
      if (front.is_alive(number)) candidates.push_back(number);
    const int start = nearest(front, candidates, shared);
    const auto missing = std::ranges::find_if(shared, [&](int v) { return !has(front.scope(start), v); });
    if (missing == shared.end()) return;
    const int end = *std::ranges::find_if(candidates, [&](int number) { return has(front.scope(number), *missing); });
    const std::vector<int> way = path(front, start, *missing, end);
    const int position = oversized(needs(front, way, shared, *missing));
    if (position < 0) return;
    front.shorten(way, std::size_t(position), shared);
  }
}

// Returns the candidate with most of the variables `shared`; of several, the smallest.
int TreeBuilder::nearest(const CliqueForest& forest, std::span<const int> candidates,
                         std::span<const int> shared) const {
  const auto key = [&](int number) {
    const std::span scope = forest.scope(number);
    return std::tuple(-std::ranges::count_if(shared, [&](int v) { return has(scope, v); }), cells_of(scope, sizes_),
                      number);
  };
  return *std::ranges::min_element(candidates, {}, key);
}

// Returns the path from the clique `start` to the nearest clique with the variable. If no clique connected to `start`
// has it, `start` is linked to `end`, which has the variable.
std::vector<int> TreeBuilder::path(CliqueForest& forest, int start, int variable, int end) const {
  std::vector<int> way = forest.path(start, variable);
  if (!way.empty()) return way;
  forest.link(start, end);
  return {start, end};
}

// Returns the scopes that all cliques of a path but the last need, so that the variable is carried from the last clique
// to the first one.
std::vector<Scope> TreeBuilder::needs(const CliqueForest& forest, std::span<const int> path,
                                      std::span<const int> shared, int variable) const {
  std::vector<Scope> scopes;
  for (std::size_t position = 0; position + 1 < path.size(); ++position) {
    const Scope ahead = joined(std::span(&variable, 1), forest.separator(path[position], path[position + 1]));
    const Scope behind = position ? forest.separator(path[position], path[position - 1])
                                  : shared_part(forest.scope(path[position]), shared);
    scopes.push_back(joined(ahead, behind));
  }
  return scopes;
}

// Returns the position of the first scope with too many cells; -1 if there is none.
int TreeBuilder::oversized(std::span<const Scope> scopes) const {
  const auto is_too_large = [&](const Scope& scope) { return cells_of(scope, sizes_) > result_.most_cells_; };
  const auto first = std::ranges::find_if(scopes, is_too_large);
  return first == scopes.end() ? -1 : int(first - scopes.begin());
}

// Eliminates a variable after all its factors have been added.
void TreeBuilder::eliminate(int variable) {
  Growing tree = homes_[variable];
  if (!tree) {
    tree = std::make_shared<GrowingTree>(holders_);
    tree->add_front({variable});
  }
  const auto join = [&] {
    Scope scope{variable};
    for (const int number : holders_[variable]) scope = joined(scope, tree->scope(number));
    return scope;
  };
  Scope scope = join();
  if (cells_of(scope, sizes_) > result_.most_cells_) {
    Closed closed = close(*tree);
    closed.front.separate(variable, result_.most_cells_);
    tree = follow(closed);
    scope = join();
  }
  homes_[variable].reset();
  tree->eliminate(variable, scope);
  std::vector<int> positions;
  if (!tree->has_front()) complete(*tree, positions, false);
}

// Adds a growing tree to the finished ones, calibrates it, and returns its number.
int TreeBuilder::complete(GrowingTree& growing, std::vector<int>& positions, bool is_closed) {
  std::vector<std::pair<int, int>> weighted;  // variables of the front, each with its last clique
  if (is_closed && result_.forecasts_) {
    for (int number = 0; number < growing.size(); ++number)
      if (growing.is_front(number))
        for (const int v : growing.scope(number))
          if (result_.forecasts_->has(v) && holders_[v].back() == number) weighted.emplace_back(v, number);
    std::ranges::sort(weighted);
  }
  result_.trees_.push_back(growing.complete(sizes_, rank_, result_.trees_, positions));
  LinkedTree& tree = result_.trees_.back();
  for (const auto& [variable, number] : weighted) tree.weighted.push_back({variable, positions[number]});
  result_.bytes_ += kCliqueBytes * double(tree.cliques.size());
  if (result_.bytes_ + kCalibratedBytes * double(tree.cliques.cells()) > result_.most_bytes_) throw TreesTooLarge();
  result_.calibrate_tree(tree);
  return int(result_.trees_.size()) - 1;
}

// Finishes a tree, and returns its front for approximation.
TreeBuilder::Closed TreeBuilder::close(GrowingTree& growing) {
  std::vector<int> positions;
  const int number = complete(growing, positions, true);
  const RootedCliques& cliques = result_.trees_[number].cliques;
  CliqueFront front(sizes_);
  std::vector<int> numbers(growing.size(), -1);
  for (int clique = 0; clique < growing.size(); ++clique) {
    if (!growing.is_front(clique)) continue;
    const double* const table = result_.beliefs_.data() + cliques.firsts[positions[clique]];
    for (const int v : growing.scope(clique)) holders_[v].clear();
    numbers[clique] =
        front.add(growing.scope(clique), {table, table + cliques.cells(positions[clique])}, positions[clique]);
    for (const int other : growing.neighbours(clique))
      if (other < clique && growing.is_front(other)) front.link(numbers[clique], numbers[other]);
  }
  front.absorb();
  return {std::move(front), number};
}

// Returns a tree that begins with the approximated front of another one.
TreeBuilder::Growing TreeBuilder::follow(const Closed& closed) {
  const auto& [front, number] = closed;
  LinkedTree& tree = result_.trees_[number];
  result_.divergence_ += front.divergence();
  std::vector<int> positions;
  tree.output = std::make_unique<Interface>(Interface{RootedCliques(front, sizes_, positions), {}, {}, {}, {}});
  Interface& interface = *tree.output;
  const RootedCliques& cliques = interface.cliques;
  interface.sources.resize(cliques.size());
  for (int clique = 0; clique < front.size(); ++clique)
    if (front.is_alive(clique)) interface.sources[positions[clique]] = front.source(clique);
  result_.bytes_ += kCliqueBytes * double(cliques.size()) + kMessageBytes * double(cliques.cells());
  if (result_.bytes_ > result_.most_bytes_) throw TreesTooLarge();
  if (!tree.weighted.empty()) {
    interface.backward.assign(std::size_t(cliques.cells()), 1.0);
    std::vector<std::pair<int, int>> holders;  // variables, each with a clique that has it
    for (int clique = 0; clique < front.size(); ++clique)
      for (const int v : front.scope(clique)) holders.emplace_back(v, clique);
    std::ranges::sort(holders);
    for (const auto& [variable, _] : tree.weighted) {
      const int clique = std::ranges::lower_bound(holders, std::pair(variable, 0))->second;
      multiply_by(interface.backward.data() + cliques.firsts[positions[clique]], front.scope(clique),
                  result_.forecasts_->at(variable, tree.rank).data(), std::span(&variable, 1), sizes_);
    }
    tree.weighted.clear();
  }
  interface.set_forward(result_.project(interface, tree, interface.sources));
  const Growing following = std::make_shared<GrowingTree>(holders_);
  following->begin(front, positions, number, interface);
  move(*following, following);
  return following;
}

}  // namespace elimina::approx
