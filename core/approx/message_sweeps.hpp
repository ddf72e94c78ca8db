// Loopy belief propagation on factors, without an order of elimination or clusters (Pearl 1988, "Probabilistic
// Reasoning in Intelligent Systems", section 4.4). A sweep passes over all factors, forward or backward in turn. Each
// factor computes its messages from the latest beliefs, so that a change reaches all later factors of the sweep. Time
// of a sweep and memory are proportional to the size of all factors, so this method gives the first estimate for very
// large models.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "approx/scoped_tables.hpp"

namespace elimina::approx {

class MessageSweeps {
 public:
  using Cells = std::vector<double>;

  // `scopes`: variables of each factor, slow to fast; `values`: values of all factors, at least 0.
  MessageSweeps(std::vector<std::int64_t> sizes, ScopeList scopes, Cells values);

  // Sweeps until no message changes by more than `tolerance`, or `sweeps` times; returns true if all have converged.
  // `damping`: share of the old message in a new one. Ends early, with complete beliefs, when the thread is asked to
  // stop.
  bool run(double tolerance, double damping, std::uint64_t sweeps);

  // Returns Bethe's approximation of the natural logarithm of the sum; minus infinity if the messages show that the sum
  // is 0.
  double log_sum();

  // Marginals of all variables, one after another; uniform for a variable without factors.
  const Cells& marginals() const { return beliefs_; }

  std::size_t variables() const { return sizes_.size(); }
  double residual() const { return residual_; }
  bool is_impossible() const { return impossible_; }

 private:
  struct Place {  // number of a factor; first cells of its table and messages
    std::size_t factor = 0, table = 0, message = 0;
  };

  std::size_t message_cells(std::size_t factor) const;
  double update(const Place& place, double damping);
  double update_pair(const Place& place, double damping);
  double update_binary_pair(const Place& place, double damping);
  double send(std::int32_t v, double* message, const double* cavity, double* sums, double damping);
  void take_out(std::int32_t v, const double* message, double* cavity) const;
  double log_of_beliefs();

  std::vector<std::int64_t> sizes_, firsts_;  // size of each variable; first cell of its belief
  ScopeList scopes_;
  Cells values_, messages_, beliefs_;
  std::vector<std::size_t> table_cells_;
  std::vector<std::uint32_t> run_numbers_;  // index in `runs_`, for each member of a factor of three or more variables
  std::vector<Runs> runs_;
  Cells cavities_, joint_, sums_;
  bool forward_ = true;
  double residual_ = 1;
  bool impossible_ = false;
};

}  // namespace elimina::approx
