#include "approx/clique_forest.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "stop.hpp"

namespace elimina::approx {

Scope joined(std::span<const int> first, std::span<const int> other) {
  Scope scope;
  scope.reserve(first.size() + other.size());
  std::ranges::set_union(first, other, std::back_inserter(scope));
  return scope;
}

Scope shared(std::span<const int> first, std::span<const int> other) {
  Scope scope;
  scope.reserve(std::min(first.size(), other.size()));
  std::ranges::set_intersection(first, other, std::back_inserter(scope));
  return scope;
}

Scope without(std::span<const int> scope, int variable) {
  Scope rest;
  rest.reserve(scope.size());
  for (const int v : scope)
    if (v != variable) rest.push_back(v);
  return rest;
}

bool has(std::span<const int> scope, int variable) { return std::ranges::binary_search(scope, variable); }

bool has_all(std::span<const int> scope, std::span<const int> subset) { return std::ranges::includes(scope, subset); }

int CliqueForest::add_clique(Scope scope) {
  Clique& clique = cliques_.emplace_back();
  clique.scope = std::move(scope);
  return size() - 1;
}

void CliqueForest::link(int clique, int other) {
  for (const auto& [number, neighbour] : {std::pair(clique, other), std::pair(other, clique)}) {
    std::vector<int>& neighbours = cliques_[number].neighbours;
    const auto position = std::ranges::lower_bound(neighbours, neighbour);
    if (position == neighbours.end() || *position != neighbour) neighbours.insert(position, neighbour);
  }
}

void CliqueForest::unlink(int clique, int other) {
  for (const auto& [number, neighbour] : {std::pair(clique, other), std::pair(other, clique)}) {
    std::vector<int>& neighbours = cliques_[number].neighbours;
    const auto position = std::ranges::lower_bound(neighbours, neighbour);
    if (position != neighbours.end() && *position == neighbour) neighbours.erase(position);
  }
}

void CliqueForest::remove_clique(int number, int heir) {
  const std::vector<int> neighbours = cliques_[number].neighbours;
  for (const int other : neighbours) {
    unlink(number, other);
    if (heir >= 0 && other != heir) link(heir, other);
  }
  cliques_[number] = {};
  cliques_[number].is_alive = false;
}

std::vector<int> CliqueForest::path(int start, int variable) {
  ++visits_;
  queue_.assign(1, start);
  cliques_[start].visit = visits_, cliques_[start].came_from = -1;
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    const int number = queue_[head];
    if (has(cliques_[number].scope, variable)) {
      std::vector<int> path;
      for (int clique = number; clique >= 0; clique = cliques_[clique].came_from) path.push_back(clique);
      std::ranges::reverse(path);
      return path;
    }
    for (const int other : cliques_[number].neighbours) {
      if (cliques_[other].visit == visits_) continue;
      cliques_[other].visit = visits_, cliques_[other].came_from = number;
      queue_.push_back(other);
    }
  }
  return {};
}

RootedCliques::RootedCliques(const CliqueForest& forest, std::span<const i64> sizes, std::vector<int>& positions) {
  positions.assign(forest.size(), -1);
  std::vector<char> is_visited(forest.size());
  std::vector<std::pair<int, int>> stack;  // numbers of cliques, each with its parent's position
  for (int root = 0; root < forest.size(); ++root) {
    if (!forest.is_alive(root) || is_visited[root]) continue;
    is_visited[root] = true;
    stack.emplace_back(root, -1);
    while (!stack.empty()) {
      const auto [number, parent] = stack.back();
      stack.pop_back();
      const int position = positions[number] = int(parents.size());
      parents.push_back(parent);
      scopes.append(forest.scope(number));
      firsts.push_back(firsts.back() + cells_of(forest.scope(number), sizes));
      const std::vector<int>& neighbours = forest.neighbours(number);
      for (std::size_t i = neighbours.size(); i-- > 0;) {
        if (is_visited[neighbours[i]]) continue;
        is_visited[neighbours[i]] = true;
        stack.emplace_back(neighbours[i], position);
      }
    }
  }
}

void look(i64 cells) {
  thread_local i64 waiting = 0;
  constexpr i64 many = 1 << 17;
  waiting += cells + 64;
  if (waiting < many) return;
  waiting = 0;
  check_stop();
}

double calibrate(const RootedCliques& cliques, std::span<const i64> sizes, double* tables) {
  // If the largest cell of a message is below this value, its reciprocal may leave the range of floats.
  constexpr double least_scale = 1e-290;
  struct Message {
    i64 start;
    double scale;  // largest value of the message, by which it is divided
  };
  std::vector<double> cells;  // cells of all messages
  std::vector<Message> messages(cliques.size());
  double log_z = 0;
  for (std::size_t number = cliques.size(); number-- > 0;) {
    const std::span table(tables + cliques.firsts[number], std::size_t(cliques.cells(number)));
    look(i64(table.size()));
    const int parent = cliques.parents[number];
    if (parent < 0) {
      const double total = sum_of(table);
      if (!(total > 0)) return -std::numeric_limits<double>::infinity();
      log_z += std::log(total);
      for (double& cell : table) cell /= total;
      continue;
    }
    const Scope separator = cliques.separator(number);
    const std::size_t start = cells.size();
    cells.resize(start + std::size_t(cells_of(separator, sizes)));
    const std::span message = std::span(cells).subspan(start);
    add_up(table.data(), cliques.scope(number), message.data(), separator, sizes);
    const double scale = largest_of(message);
    if (!(scale > 0)) return -std::numeric_limits<double>::infinity();
    messages[number] = {i64(start), scale};
    log_z += std::log(scale);
    for (double& cell : message) cell /= scale;
    multiply_by(tables + cliques.firsts[parent], cliques.scope(parent), message.data(), separator, sizes);
  }
  std::vector<double> sums;
  for (std::size_t number = 0; number < cliques.size(); ++number) {
    const int parent = cliques.parents[number];
    if (parent < 0) continue;
    look(cliques.cells(number));
    const std::span table(tables + cliques.firsts[number], std::size_t(cliques.cells(number)));
    const Scope separator = cliques.separator(number);
    sums.assign(std::size_t(cells_of(separator, sizes)), 0.0);
    add_up(tables + cliques.firsts[parent], cliques.scope(parent), sums.data(), separator, sizes);
    const double scale = messages[number].scale, factor = scale < least_scale ? 1 : 1 / scale;
    const double* const message = cells.data() + messages[number].start;
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = quotient(sums[i], message[i]) * factor;
    if (scale < least_scale)
      for (double& cell : table) cell /= scale;
    multiply_by(table.data(), cliques.scope(number), sums.data(), separator, sizes);
  }
  return log_z;
}

void condition(const RootedCliques& cliques, std::span<const i64> sizes, double* beliefs) {
  std::vector<double> sums;
  Runs runs;
  for (std::size_t number = 0; number < cliques.size(); ++number) {
    if (cliques.parents[number] < 0) continue;
    const Scope separator = cliques.separator(number);
    set_runs(runs, cliques.scope(number), separator, sizes);
    double* const table = beliefs + cliques.firsts[number];
    sums.assign(std::size_t(cells_of(separator, sizes)), 0.0);
    add_up(table, runs, sums.data());
    for (double& sum : sums) sum = quotient(1.0, sum);
    multiply_by(table, runs, sums.data());
  }
}

std::vector<double> marginal(std::span<const i64> sizes, std::span<const int> scope, const double* table,
                             std::span<const int> axes) {
  std::vector<double> sums(std::size_t(cells_of(axes, sizes)));
  add_up(table, scope, sums.data(), axes, sizes);
  return sums;
}

}  // namespace elimina::approx
