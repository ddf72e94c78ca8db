// Weighted mini-buckets (Liu and Ihler 2011) over one tree, with its gradient by weights and shifted costs.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "plan/tree.hpp"

namespace elimina::approx {

// Bounds log sum prod f by Hoelder's inequality: each mini-bucket r of a variable sums the powers 1 / w_r, where the weights of a
// variable's mini-buckets add up to its total weight (1; for a variable that is maximised, a small number or 0). All weights positive: an
// upper bound. One positive, the others negative: a lower bound. Shifts move costs between the mini-buckets of a variable.
//
// One array holds the messages on the way up and the beliefs of separators on the way down.
class WeightedMiniBuckets {
 public:
  // `values`: logarithms of the tree's factors, row-major over their sorted scopes, one after another. `weights`: of each node. `shared`:
  // most variables of a shift.
  WeightedMiniBuckets(const plan::PlannedTree& tree, std::vector<double> values, std::vector<double> weights,
                      int shared);

  // Parameters: the shifts of all mini-buckets of divided buckets, then the logarithms of the sizes of their weights.
  i64 parameters() const { return shifts_ + i64(divided_.size()); }
  std::size_t variables() const { return sizes_.size(); }
  i64 shifts() const { return shifts_; }
  std::vector<double> initial() const;

  // Total weight of some variables, by position in the order.
  void set_totals(std::span<const double> totals);

  // Fixes variables, by position in the order (-1: summed over): the bound is then one on a part of the sum.
  void fix(std::span<const int> values) { fixed_.assign(values.begin(), values.end()); }

  // Assignments, by position in the order, that the messages of the last bound lead to, the variable eliminated last first. The first one
  // has the best values, the others are drawn in proportion to their shares.
  std::vector<int> decode(int count, std::uint64_t seed) const;

  // The bound at some parameters (free: shifts of a bucket are less their mean). With a gradient, beliefs replace the messages.
  double evaluate(std::span<const double> parameters, std::vector<double>* gradient);

  // Marginals of each variable of the order after an evaluation with gradient: mean of its mini-buckets' beliefs, one after another.
  const std::vector<double>& marginals() const { return marginals_; }

  // Sum of the largest errors that rounding may add to each message of the last evaluation.
  double rounding() const { return rounding_; }

 private:
  struct Source {  // a table that is added to a node's
    i64 offset;    // among factors, or among messages
    int node;      // the child that sent it; -1: a factor
    int begin;     // of its strides along the node's axes
  };
  void build(int node, std::span<const double> shift);
  void add(std::span<const int> axes, std::span<const i64> strides, const double* source, double* table);
  void scatter(std::span<const int> axes, std::span<const i64> strides, const double* table, double* target);
  void inner(std::span<const int> axes, std::span<const i64> strides);
  void sum_terms(int node, i64 begin, i64 width);
  void send(int node);
  double condition(int node);
  void set_parameters(std::span<const double> parameters);

  std::vector<i64> sizes_;  // of variables by position
  std::vector<int> fixed_;
  plan::Lists cliques_;  // positions: the variable, then the separator
  std::vector<int> variables_, parents_;
  std::vector<double> values_, messages_, weights_;
  std::vector<i64> offsets_;  // of messages
  std::vector<i64> columns_;  // cells of messages
  std::vector<i64> sources_begin_;
  std::vector<Source> sources_;
  std::vector<i64> strides_;
  std::vector<int> groups_;       // divided_ begins of each divided bucket, and the end
  std::vector<int> divided_;      // nodes of divided buckets, bucket by bucket
  std::vector<int> number_;       // of each node among these; -1: its bucket is whole
  std::vector<i64> shift_begin_;  // by number
  std::vector<i64> shift_strides_;
  std::vector<i64> shift_strides_begin_;
  i64 shifts_ = 0;
  std::vector<double> totals_;         // by group
  std::vector<double> shifted_;        // the shifts less their means
  std::vector<double> initial_sizes_;  // logarithms of the sizes of weights
  std::vector<int> positive_;          // by group: place of the positive weight of a lower bound; -1: all are positive
  std::vector<double> table_, terms_, scaled_, peaks_, sums_, shares_;
  std::vector<i64> block_;
  i64 outer_axes_ = 0;
  bool is_contiguous_ = false;
  std::vector<double> marginals_;
  std::vector<i64> marginal_begin_;
  std::vector<int> copies_;
  double rounding_ = 0;
};

}  // namespace elimina::approx
