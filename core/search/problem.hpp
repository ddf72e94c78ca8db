// A minimisation over a pseudo-tree: factors, and messages of mini-buckets as its heuristic, in place in one arena of cells.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "network/view.hpp"
#include "plan/lists.hpp"

namespace elimina::search {

using network::Axis;
using network::infinite;
using network::Type;
using network::Var;
using plan::Lists;

struct Arena : network::Numbers {
  const void* cells;
  std::int64_t size;

  // Calls a function with a pointer to the cells at their type.
  template <class Visit>
  auto as_cells(Visit visit) const {
    return Numbers::as_cells(cells, visit);
  }
};

// A factor, or a message that `origin` sent, over its home and ancestors of that; at the root if it has no variables.
struct Table {
  Var home, origin;  // -1: a factor
  std::int64_t offset, stride;
  std::vector<Axis> axes;
};

// The variables and one more, of one value: the root above them all, where the constants are.
struct Problem {
  Arena arena;
  bool integral;  // all costs are integers
  std::vector<int> size;
  std::vector<Var> parent;  // the root's is -1
  std::vector<Table> tables;
  std::vector<Var> preorder;  // parents first
  Lists children, contexts;
  Lists factors, messages;  // tables at home in a bucket
  Lists below;  // messages from the subtree whose homes are above it, first those that the variable itself sends

  // Throws std::invalid_argument and std::out_of_range if anything does not fit. `words` has for each table: offset, home, the home's
  // stride, origin, the number of its other variables, and for each of them the variable and the stride. `contexts`: of each variable.
  Problem(const Arena& arena, std::span<const std::int64_t> words, const std::vector<int>& sizes,
          const std::vector<Var>& parents, Lists contexts, bool integral);

  Var root() const { return static_cast<Var>(size.size()) - 1; }
  bool is_ancestor(Var upper, Var lower) const {
    return upper != lower && entry_[upper] <= entry_[lower] && entry_[lower] < exit_[upper];
  }

  // The messages that pass a variable: those of `below` that others send.
  std::span<const int> through(Var v) const { return below[v].subspan(static_cast<std::size_t>(sent_[v])); }

  // The factors, for a local search; the root is not one of its variables.
  network::View factors_view() const;

  // Cost of the factors.
  double cost(const std::vector<int>& value) const;

  // Bytes of the lists and tables, without the arena.
  std::size_t bytes() const;

  // A lower bound on integers, raised to one.
  double rounded(double bound) const;

 private:
  void read_tables(std::span<const std::int64_t> words);
  void build_tree();
  void order_children();
  void check_table(const Table& table) const;
  void check_contexts() const;
  void check_range() const;
  void list_tables();

  std::vector<int> entry_, exit_;
  std::vector<int> sent_;  // messages of each variable
};

}  // namespace elimina::search
