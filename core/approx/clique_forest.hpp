// Forests of cliques with the running intersection property, and their calibration.
#pragma once
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"
#include "elimina/config.hpp"

namespace elimina::approx {

// Ranks of variables (positions in the elimination order), ascending: the first one is the slowest axis of a table.
using Scope = std::vector<int>;

Scope joined(std::span<const int> first, std::span<const int> other);
Scope shared(std::span<const int> first, std::span<const int> other);
Scope without(std::span<const int> scope, int variable);
bool has(std::span<const int> scope, int variable);
bool has_all(std::span<const int> scope, std::span<const int> subset);

// A forest of cliques, which are numbered in the order in which they are added.
class CliqueForest {
 public:
  int add_clique(Scope scope);
  int size() const { return int(cliques_.size()); }
  bool is_alive(int number) const { return cliques_[number].is_alive; }
  const Scope& scope(int number) const { return cliques_[number].scope; }
  const std::vector<int>& neighbours(int number) const { return cliques_[number].neighbours; }
  void set_scope(int number, Scope scope) { cliques_[number].scope = std::move(scope); }
  void link(int clique, int other);
  void unlink(int clique, int other);
  // Removes a clique, and links its neighbours to `heir` unless that is -1.
  void remove_clique(int number, int heir = -1);
  Scope separator(int clique, int other) const { return shared(scope(clique), scope(other)); }
  // Returns the path of cliques from `start` to the nearest clique with the variable; empty if no connected clique has
  // the variable.
  std::vector<int> path(int start, int variable);

 private:
  struct Clique {
    Scope scope;
    std::vector<int> neighbours;  // ascending
    int came_from = -1;
    int visit = 0;  // number of the last path search that reached the clique
    bool is_alive = true;
  };
  std::vector<Clique> cliques_;
  std::vector<int> queue_;
  int visits_ = 0;
};

// Cliques of a forest, parents first, and the offsets of their tables, which lie one after another.
struct RootedCliques {
  ScopeList scopes{{0}, {}};
  std::vector<int> parents;    // position of each clique's parent; -1: none
  std::vector<i64> firsts{0};  // first cell of each table, and the number of all cells at the end

  // Sets `positions` to the position of each clique of the forest in these lists; -1 for a removed clique.
  RootedCliques(const CliqueForest& forest, std::span<const i64> sizes, std::vector<int>& positions);

  std::size_t size() const { return parents.size(); }
  std::span<const int> scope(std::size_t number) const { return scopes[number]; }
  i64 cells(std::size_t number) const { return firsts[number + 1] - firsts[number]; }
  i64 cells() const { return firsts.back(); }
  Scope separator(std::size_t number) const { return shared(scope(number), scope(parents[number])); }
};

// Checks for a stop request after about every 2^17 cells of work. `cells`: cells since the last call.
void look(i64 cells);

// Passes messages up and down, after which the tables are normalised beliefs. Returns the natural logarithm of the sum
// of the tables' product. If that sum is 0, the result is minus infinity, and the beliefs are meaningless.
double calibrate(const RootedCliques& cliques, std::span<const i64> sizes, double* tables);

// Replaces each clique's calibrated belief by its distribution given the separator to the parent. The product of these
// distributions is the joint distribution.
void condition(const RootedCliques& cliques, std::span<const i64> sizes, double* beliefs);

// Returns the marginal of a table over some of its variables.
std::vector<double> marginal(std::span<const i64> sizes, std::span<const int> scope, const double* table,
                             std::span<const int> axes);

// Returns the quotient; 0 if the denominator is so small that it counts as 0.
inline double quotient(double numerator, double denominator) {
  constexpr double least = 1e-300;
  return denominator > least ? numerator / denominator : 0.0;
}

}  // namespace elimina::approx
