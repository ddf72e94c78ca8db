#include "approx/linked_trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "approx/tree_builder.hpp"
#include "stop.hpp"

namespace elimina::approx {

namespace {

// Smallest weight of a state in a forecast, so that no state is excluded.
constexpr double kLeastForecast = 1e-2;

// Divides each clique's table by its table in `denominators`, then the quotient by its largest value; returns the sum
// of the natural logarithms of these largest values.
double divide(const RootedCliques& cliques, std::vector<double>& numerators, std::span<const double> denominators) {
  double log_scale = 0;
  for (std::size_t number = 0; number < cliques.size(); ++number) {
    const std::span table(numerators.data() + cliques.firsts[number], std::size_t(cliques.cells(number)));
    const double* const other = denominators.data() + cliques.firsts[number];
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = quotient(table[i], other[i]);
    const double largest = largest_of(table);
    if (!(largest > 0) || !std::isfinite(largest)) continue;
    for (double& cell : table) cell /= largest;
    log_scale += std::log(largest);
  }
  return log_scale;
}

}  // namespace

RankedFactors::RankedFactors(std::vector<i64> sizes, const ScopeList& scopes, std::span<const double> values)
    : sizes_(std::move(sizes)), buckets_{std::vector<i64>(sizes_.size() + 1), std::vector<int>(scopes.count())},
      tables_(values.size(), 1.0) {
  for (const i64 size : sizes_) most_cells_ = std::max(most_cells_, size);
  std::vector<i64>& starts = buckets_.starts;
  for (std::size_t factor = 0; factor < scopes.count(); ++factor) {
    Scope scope(scopes[factor].begin(), scopes[factor].end());
    std::ranges::sort(scope);
    const i64 cells = cells_of(scope, sizes_), first = firsts_.back();
    look(cells);
    multiply_by(tables_.data() + first, scope, values.data() + first, scopes[factor], sizes_);
    firsts_.push_back(first + cells);
    most_cells_ = std::max(most_cells_, cells);
    ++starts[scope.front() + 1];
    scopes_.append(scope);
  }
  for (std::size_t rank = 0; rank < sizes_.size(); ++rank) starts[rank + 1] += starts[rank];
  std::vector<i64> ends = starts;
  for (std::size_t factor = 0; factor < scopes.count(); ++factor)
    buckets_.members[ends[scopes_[factor].front()]++] = int(factor);
}

std::span<const double> Forecasts::at(int variable, int rank) const {
  const auto distance = [&](const auto& entry) { return std::abs(entry.first - rank); };
  return std::ranges::min_element(entries_[variable], {}, distance)->second;
}

void Interface::set_forward(std::vector<double> smoothed) {
  forward = std::move(smoothed);
  if (!backward.empty()) forward_scale = divide(cliques, forward, backward) - backward_scale;
}

void Interface::set_backward(std::vector<double> smoothed) {
  backward = std::move(smoothed);
  backward_scale = divide(cliques, backward, forward) - forward_scale;
}

LinkedTrees::LinkedTrees(std::shared_ptr<const RankedFactors> factors, i64 most_cells, double most_bytes,
                         std::shared_ptr<const Forecasts> forecasts)
    : factors_(std::move(factors)), forecasts_(std::move(forecasts)), sizes_(factors_->sizes()),
      most_cells_(std::max(most_cells, factors_->most_cells())), most_bytes_(most_bytes) {}

void LinkedTrees::build() { TreeBuilder(*this).build(); }

bool LinkedTrees::is_exact() const {
  return std::ranges::none_of(trees_, [](const LinkedTree& tree) { return bool(tree.output); });
}

void LinkedTrees::calibrate_tree(const LinkedTree& tree) {
  // Number of factors after which a product is divided by its largest value, so that it does not underflow.
  constexpr int together = 8;
  const RootedCliques& cliques = tree.cliques;
  if (beliefs_.size() < std::size_t(cliques.cells())) beliefs_.resize(std::size_t(cliques.cells()));
  double log_scale = 0;
  std::vector<int> products(cliques.size());  // number of tables in each clique's product
  const auto multiply_clique = [&](int clique, std::span<const int> scope, const double* factor) {
    look(cliques.cells(clique));
    double* const table = beliefs_.data() + cliques.firsts[clique];
    if (products[clique]++) {
      multiply_by(table, cliques.scope(clique), factor, scope, sizes_);
    } else {
      spread(table, cliques.scope(clique), factor, scope, sizes_);
    }
  };
  for (const auto& [factor, clique] : tree.factors) {
    multiply_clique(clique, factors_->scope(factor), factors_->table(factor));
    if (products[clique] % together) continue;
    const std::span table(beliefs_.data() + cliques.firsts[clique], std::size_t(cliques.cells(clique)));
    const double largest = largest_of(table);
    if (!(largest > 0)) continue;
    for (double& cell : table) cell /= largest;
    log_scale += std::log(largest);
  }
  for (const int input : tree.inputs) {
    const Interface& interface = *trees_[input].output;
    log_scale += interface.forward_scale;
    for (std::size_t number = 0; number < interface.cliques.size(); ++number)
      multiply_clique(interface.targets[number], interface.cliques.scope(number),
                      interface.forward.data() + interface.cliques.firsts[number]);
  }
  if (tree.output) {
    const Interface& interface = *tree.output;
    log_scale += interface.backward_scale;
    for (std::size_t number = 0; number < interface.cliques.size() && !interface.backward.empty(); ++number)
      multiply_clique(interface.sources[number], interface.cliques.scope(number),
                      interface.backward.data() + interface.cliques.firsts[number]);
  }
  for (const auto& [variable, clique] : tree.weighted)
    multiply_clique(clique, std::span(&variable, 1), forecasts_->at(variable, tree.rank).data());
  for (std::size_t clique = 0; clique < cliques.size(); ++clique)
    if (!products[clique]) std::fill_n(beliefs_.data() + cliques.firsts[clique], cliques.cells(clique), 1.0);
  const double log_z = calibrate(cliques, sizes_, beliefs_.data());
  if (!std::isfinite(log_z)) throw ZeroSum();
  log_z_ += log_z + log_scale;
}

// Returns the factors of the distribution that has the marginals of a calibrated tree on all cliques of an interface.
// `hosts`: for each clique of the interface, a clique of the tree that contains it.
std::vector<double> LinkedTrees::project(const Interface& interface, const LinkedTree& tree,
                                         std::span<const int> hosts) const {
  const RootedCliques& cliques = interface.cliques;
  std::vector<double> factors(std::size_t(cliques.cells()));
  for (std::size_t number = 0; number < cliques.size(); ++number) {
    look(tree.cliques.cells(hosts[number]));
    add_up(beliefs_.data() + tree.cliques.firsts[hosts[number]], tree.cliques.scope(hosts[number]),
           factors.data() + cliques.firsts[number], cliques.scope(number), sizes_);
  }
  condition(cliques, sizes_, factors.data());
  return factors;
}

std::vector<double> LinkedTrees::pass_backward() {
  std::vector<i64> starts(sizes_.size() + 1);
  for (std::size_t rank = 0; rank < sizes_.size(); ++rank) starts[rank + 1] = starts[rank] + sizes_[rank];
  std::vector<double> shares(std::size_t(starts.back()));
  log_z_ = 0;
  for (std::size_t number = trees_.size(); number-- > 0;) {
    const LinkedTree& tree = trees_[number];
    calibrate_tree(tree);
    for (const auto& [rank, clique] : tree.eliminated) {
      const std::span share(shares.data() + starts[rank], std::size_t(sizes_[rank]));
      add_up(beliefs_.data() + tree.cliques.firsts[clique], tree.cliques.scope(clique), share.data(),
             std::span(&rank, 1), sizes_);
      const double total = sum_of(share);
      for (double& cell : share) cell /= total;
    }
    for (const int input : tree.inputs) {
      Interface& interface = *trees_[input].output;
      interface.set_backward(project(interface, tree, interface.targets));
    }
  }
  return shares;
}

void LinkedTrees::pass_forward() {
  log_z_ = 0;
  for (LinkedTree& tree : trees_) {
    calibrate_tree(tree);
    if (tree.output) tree.output->set_forward(project(*tree.output, tree, tree.output->sources));
  }
}

std::shared_ptr<const Forecasts> LinkedTrees::forecast() const {
  auto forecasts = std::make_shared<Forecasts>(sizes_.size());
  std::vector<int> stamps(sizes_.size(), -1);
  for (std::size_t number = 0; number < trees_.size(); ++number) {
    const Interface* const interface = trees_[number].output.get();
    if (!interface || interface->backward.empty()) continue;
    const RootedCliques& cliques = interface->cliques;
    std::vector<double> before = interface->forward, after = interface->forward;
    for (std::size_t i = 0; i < after.size(); ++i) after[i] *= interface->backward[i];
    calibrate(cliques, sizes_, before.data());
    calibrate(cliques, sizes_, after.data());
    for (std::size_t clique = 0; clique < cliques.size(); ++clique) {
      for (const int v : cliques.scope(clique)) {
        if (stamps[v] == int(number)) continue;
        stamps[v] = int(number);
        const std::span variable(&v, 1);
        const i64 first = cliques.firsts[clique];
        const std::vector<double> prior = marginal(sizes_, cliques.scope(clique), before.data() + first, variable);
        std::vector<double> weights = marginal(sizes_, cliques.scope(clique), after.data() + first, variable);
        for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = quotient(weights[i], prior[i]);
        const double largest = std::max(largest_of(weights), 1e-300);
        // The square root flattens forecasts, because rough approximations are often too confident.
        for (double& weight : weights) weight = std::max(std::sqrt(weight / largest), kLeastForecast);
        forecasts->add(v, trees_[number].rank, std::move(weights));
      }
    }
  }
  return forecasts;
}

}  // namespace elimina::approx
