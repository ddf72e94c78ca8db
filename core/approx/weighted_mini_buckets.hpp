// Weighted mini-buckets (Liu and Ihler 2011) over one tree, with the gradient of the bound with respect to weights and
// shifts of costs.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "approx/block_layout.hpp"
#include "approx/powered_sums.hpp"
#include "plan/tree.hpp"

namespace elimina::approx {

// Bound on log sum prod f by Hoelder's inequality: mini-bucket r of a variable x sends (sum_x prod f^(1 / w_r))^w_r,
// where the weights of a variable's mini-buckets add up to its total weight (1; for a maximised variable, a small
// number or 0). If all weights are positive, the bound is an upper one; if one is positive and the others negative, a
// lower one. Shifts move costs between the mini-buckets of a variable.
// The message of a node (upward pass) or the belief of its separator (downward pass) is in memory only between the
// steps of the node and its parent. For each node, the shares of its variable's states are kept between the passes.
class WeightedMiniBuckets {
 public:
  // `values`: logarithms of the tree's factors, row-major over their sorted scopes, one after another. `weights`: a
  // weight for each node. `shared`: largest number of variables of a shift.
  WeightedMiniBuckets(const plan::PlannedTree& tree, std::vector<double> values, std::vector<double> weights,
                      int shared);

  // Number of parameters. The parameters are the shifts of all mini-buckets of partitioned buckets, then the logarithms
  // of the absolute values of the mini-buckets' weights. If all weights of a bucket are positive, the weights given by
  // these logarithms are divided by their sum.
  i64 parameters() const { return shifts_ + i64(divided_.size()); }
  std::size_t variables() const { return sizes_.size(); }
  // Returns the number of cells of the table of each parameter that is a shift.
  std::vector<double> shift_cells() const;
  std::vector<double> initial() const;

  // Returns initial parameters from those of mini-buckets along the same order with another i-bound: each shift and
  // weight goes to the mini-bucket that has most variables in common with the one it belonged to before.
  std::vector<double> continued(const WeightedMiniBuckets& other, std::span<const double> parameters) const;

  // Sets the total weight of each variable, by position in the order.
  void set_totals(std::span<const double> totals);

  // Fixes the values of variables, by position in the order; -1: the variable is summed out. The bound then holds for
  // the sum over the variables that are not fixed.
  void fix(std::span<const int> values) { fixed_.assign(values.begin(), values.end()); }

  // Decodes `count` assignments, by position in the order, from the messages of the last evaluation without gradient.
  // The variable eliminated last is decoded first. The first assignment has the best values, the others are drawn in
  // proportion to their shares.
  std::vector<int> decode(int count, std::uint64_t seed) const;

  // Returns the bound at some parameters. Shifts of a bucket need not cancel: their mean is subtracted. `gradient`:
  // nullptr if not wanted.
  double evaluate(std::span<const double> parameters, std::vector<double>* gradient);

  // Marginals after an evaluation with gradient, one variable of the order after another: the mean of the beliefs of
  // the variable's mini-buckets.
  const std::vector<double>& marginals() const { return marginals_; }

  // Sum of the largest rounding errors of the messages of the last evaluation.
  double rounding() const { return rounding_; }

  // Frees the messages and shares until the next evaluation.
  void release_tables();

  // Bytes of the messages and shares of a tree.
  static double bytes(const plan::PlannedTree& tree);

 private:
  enum class Origin { kFactor, kMessage, kShift };
  struct Source {  // a table that is added to a node's table
    Origin origin;
    i64 offset;  // offset among factors, live messages or shifts
    int node;    // child that sent the message
    int begin;   // start of its strides along the node's axes
  };
  struct Blocks {  // blocks of a node's columns, over the axes from `outer_axes` on
    std::size_t outer_axes;
    i64 columns;  // number of columns of each block
  };
  template <class Work>
  void for_blocks(int node, const Work& work);
  void build(int node, i64 row);
  double* base_of(const Source& source);
  void send(int node, bool keeps_shares);
  double condition(int node, double* gradient);
  void set_parameters(std::span<const double> parameters);
  void centre_shifts(std::span<const double> parameters, std::vector<double>& shifted) const;
  int closest(const WeightedMiniBuckets& other, int node, std::size_t group) const;

  std::vector<i64> sizes_;  // sizes of variables, by position
  std::vector<int> fixed_;
  plan::Lists cliques_;  // positions: the variable, then the separator
  std::vector<int> variables_, parents_;
  std::vector<int> sequence_;  // all nodes, children first
  std::vector<double> values_, live_, weights_;
  std::vector<i64> offsets_;  // offsets of live messages
  i64 live_cells_;
  std::vector<i64> columns_;  // number of cells of each message
  std::vector<i64> records_begin_;
  // Shares of each node, or its message in single precision after an evaluation without gradient.
  std::vector<Share> records_;
  std::vector<i64> sources_begin_;
  std::vector<Source> sources_;
  std::vector<i64> strides_;
  std::vector<Blocks> blocks_;    // blocks of each node
  std::vector<int> groups_;       // start of each partitioned bucket in divided_, and the end
  std::vector<int> divided_;      // nodes of partitioned buckets, bucket by bucket
  std::vector<int> number_;       // position of each node in divided_; -1: its bucket is not partitioned
  std::vector<i64> shift_begin_;  // offset of each mini-bucket's shift, by position in divided_
  plan::Lists shift_scopes_;      // scope of the shifts of each group, that is, of each partitioned bucket
  i64 shifts_ = 0;
  std::vector<double> totals_;         // total weight of each group
  std::vector<double> shifted_;        // the shifts minus their means
  std::vector<double> initial_sizes_;  // initial logarithms of the weights' absolute values
  std::vector<int> positive_;          // position in divided_ of each group's positive weight; -1: all are positive
  std::vector<double> marginals_;
  std::vector<i64> marginal_begin_;
  std::vector<int> copies_;
  double rounding_ = 0;

  // The current block: its table, and the largest magnitude of each column; layouts of the source tables, and the
  // block's offsets in these; sizes of the node's axes, and the block's position along them.
  std::vector<double> block_, magnitudes_;
  std::vector<BlockLayout> layouts_;
  std::vector<i64> source_offsets_, axis_sizes_, counts_;
};

}  // namespace elimina::approx
