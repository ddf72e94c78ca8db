// Minimisation over a pseudo-tree: factors and, as a heuristic, messages of mini-buckets, in place in one arena of
// cells.
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

  // Calls a function with a pointer to the cells in their type.
  template <class Visit>
  auto as_cells(Visit visit) const {
    return Numbers::as_cells(cells, visit);
  }
};

// A factor, or a message that the variable `origin` sends. Its variables are its home and ancestors of the home; the
// root is the home of a table without variables.
struct Table {
  Var home, origin;  // origin -1: a factor
  std::int64_t offset, stride;
  std::vector<Axis> axes;
};

// A minimisation problem. Its last variable is the root, above all others: it has one value and holds the constants.
struct Problem {
  Arena arena;
  bool integral;  // true if all costs are integers
  std::vector<int> size;
  std::vector<Var> parent;  // -1 for the root
  std::vector<Table> tables;
  std::vector<Var> preorder;  // parents before children
  Lists children, contexts;
  Lists factors, messages;  // tables whose home is the variable
  Lists below;              // messages from the subtree to homes above it, those of the variable itself first

  // Throws std::invalid_argument and std::out_of_range for inconsistent input. `words`: for each table its offset,
  // home, stride of the home, origin, number of other variables, and for each of them variable and stride. `contexts`:
  // context of each variable.
  Problem(const Arena& arena, std::span<const std::int64_t> words, const std::vector<int>& sizes,
          const std::vector<Var>& parents, Lists contexts, bool integral);

  Var root() const { return static_cast<Var>(size.size()) - 1; }
  bool is_ancestor(Var upper, Var lower) const {
    return upper != lower && entry_[upper] <= entry_[lower] && entry_[lower] < exit_[upper];
  }

  // Messages that pass a variable: those of `below` from other senders.
  std::span<const int> through(Var v) const { return below[v].subspan(static_cast<std::size_t>(sent_[v])); }

  // Returns the factors, without constants and without the root as a variable, for a local search.
  network::View factors_view() const;

  // Returns the cost of an assignment by the factors.
  double cost(const std::vector<int>& value) const;

  // Bytes of the lists and tables without the arena.
  std::size_t bytes() const;

  // Returns a lower bound, rounded up if all costs are integers and the cells are floating-point numbers.
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
  std::vector<int> sent_;  // number of messages that each variable sends
};

}  // namespace elimina::search
