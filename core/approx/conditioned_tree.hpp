// Elimination of some variables given the states of all others: the sum, marginals, and states drawn together (Bidyuk
// and Dechter 2007, "Cutset sampling for Bayesian networks").
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"
#include "call.hpp"

namespace elimina::approx {

// Working memory of a conditioned tree. Trees may use it in turn: each `collect` overwrites it.
struct TreeTables {
  std::vector<double> factors, messages, row, sums, log_scales;
};

class ConditionedTree {
 public:
  // `order`: the variables that are eliminated, each once; all others are conditioned on.
  ConditionedTree(std::vector<std::int64_t> sizes, const ScopeList& scopes, std::vector<std::int32_t> order);

  // Runs the upward pass, and returns the natural logarithm of the sum of products, minus infinity if the sum is 0.
  // `values`: values of all factors, from 0 to 1, one factor after another; `states`: states of the variables that are
  // conditioned on.
  double collect(std::span<const double> values, std::span<const std::int32_t> states, TreeTables& tables) const;

  // Returns false if numbers that underflowed in the last upward pass may matter.
  bool is_accurate(const TreeTables& tables) const;

  // Draws the states of the eliminated variables; call it after an upward pass. `uniform` returns random numbers from 0
  // to 1.
  void draw(std::span<std::int32_t> states, Call<double()> uniform, TreeTables& tables) const;

  // Adds the marginals of the eliminated variables, times `weight`, to `sums`, which has a cell for each state of all
  // variables. The downward pass overwrites the messages of the upward one.
  void add_marginals(double weight, std::span<double> sums, TreeTables& tables) const;

  std::span<const std::int32_t> order() const { return order_; }
  // `table_cells`: number of cells of the working memory. `joined_cells`: number of cells of all cliques together;
  // cliques are never stored as a whole.
  std::int64_t table_cells() const { return factor_cells_ + message_cells_ + largest_row_ + largest_sums_; }
  std::int64_t joined_cells() const { return joined_cells_; }

 private:
  struct Axis {
    std::int32_t variable;
    std::int64_t stride;
  };
  struct Table {  // a factor, or a message of another node, in the product of a node
    bool is_message;
    std::uint32_t runs, first_axis, last_axis;  // index of its runs; range of its axes other than the node's variable
    std::int64_t offset, cells, stride;
  };
  struct Node {
    std::int32_t parent;  // -1: a root
    std::uint32_t first_table, last_table;
    std::int64_t message, cells;  // offset and cells of its message
  };
  struct Source {  // a factor before conditioning
    std::uint32_t first_free, last_free, last_given;
    std::int64_t begin, target, cells;
  };

  void reduce(std::span<const double> values, std::span<const std::int32_t> states, TreeTables& tables) const;
  // Overwrites a row with the product of a node's tables at a state of its variable.
  void join(const Node& node, std::int64_t state, double* row, const TreeTables& tables) const;
  const double* cells_of_table(const Table& table, const TreeTables& tables) const {
    return (table.is_message ? tables.messages : tables.factors).data() + table.offset;
  }

  std::vector<std::int64_t> sizes_, begins_;
  std::vector<std::int32_t> order_;
  std::vector<Node> nodes_;
  std::vector<Table> tables_;
  std::vector<Axis> axes_;
  std::vector<Source> sources_;
  std::vector<Axis> source_axes_;  // for each factor: its free axes, slow to fast, then the other ones
  std::vector<Runs> runs_;
  std::int64_t factor_cells_ = 0, message_cells_ = 0, joined_cells_ = 0, largest_row_ = 1, largest_sums_ = 1;
  std::size_t constants_ = 0;  // number of factors without free variables; these come first in the reduced tables
};

}  // namespace elimina::approx
