// Sums and marginals by conditioning on the states of a few variables, one combination after another (Pearl 1988,
// "Probabilistic reasoning in intelligent systems", section 4.4.2).
#pragma once
#include <cstdint>
#include <vector>

#include "approx/conditioned_tree.hpp"

namespace elimina::approx {

class CutsetConditioning {
 public:
  // `values`: values of all factors, from 0 to 1; `order`: the variables that are eliminated in each slice. A slice
  // fixes the states of all other variables.
  CutsetConditioning(std::vector<std::int64_t> sizes, const ScopeList& scopes, std::vector<double> values,
                     std::vector<std::int32_t> order);

  // Adds up slices until all are done, or the thread is asked to stop; returns true if all are done.
  bool run();

  // Share of the slices that are done.
  double progress() const;
  // Number of cells of all tables.
  std::int64_t cells() const { return tree_.table_cells() + std::int64_t(values_.size() + sums_.size()); }
  // Natural logarithm of the sum of the slices so far, and the marginals of this sum.
  double log_sum() const;
  std::vector<double> marginals() const;
  // False if numbers below the range of floats may have mattered.
  bool is_accurate() const { return is_accurate_; }

 private:
  void add_slice();

  ConditionedTree tree_;
  TreeTables tables_;
  std::vector<std::int64_t> sizes_, begins_;
  std::vector<double> values_;
  std::vector<std::int32_t> cutset_, states_;  // the cutset; states of all variables, 0 for eliminated ones
  std::vector<double> sums_;  // sum of the slices' marginals, weighted by slice sum / largest slice sum
  double log_peak_, total_ = 0;
  bool is_done_ = false, is_accurate_ = true;
};

}  // namespace elimina::approx
