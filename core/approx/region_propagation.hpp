// Generalised belief propagation on a region graph: minimisation of Kikuchi's free energy by messages from inner to
// outer regions (Heskes, Albers and Kappen 2003, "Approximate inference and constrained optimization").
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "approx/region_graph.hpp"
#include "approx/scoped_tables.hpp"

namespace elimina::approx {

class RegionPropagation {
 public:
  explicit RegionPropagation(const RegionGraph& graph);

  // Multiplies each factor into the table of an outer region that contains it; `values`: values of all factors, at
  // least 0. Returns false if no region contains a factor, or the number of values is wrong. Call it before messages
  // are passed.
  bool multiply(const RegionGraph& graph, const ScopeList& scopes, std::span<const double> values);

  // Removes tuples that other regions forbid, until nothing changes; returns false if a region has no tuple left. Call
  // it before messages are passed.
  bool filter_tuples();

  // Passes messages until regions agree within `tolerance` on all probabilities, or for at most `sweeps` sweeps;
  // returns true if they agree. Messages need not converge. `damping`: share of the old message in a new one.
  bool run(double tolerance, double damping, std::uint64_t sweeps);

  // Runs the double loop, which always converges: a tangent replaces the concave part of the free energy, and sweeps
  // minimise the convex sum until regions agree within `precision` times the last move of the tangent point, or for at
  // most `inner_sweeps` sweeps. The first call resets all messages. Returns true if all regions agree within
  // `tolerance`, and false after about `sweeps` sweeps in total.
  bool run_double_loop(double tolerance, double precision, std::uint64_t inner_sweeps, std::uint64_t sweeps);

  // Returns Kikuchi's approximation of the sum's natural logarithm.
  double log_sum();

  // Returns the marginals of variables, one after another, each from the smallest region with the variable; uniform if
  // no region has it.
  std::vector<double> marginals(std::span<const std::int32_t> variables);

  // Largest difference of probabilities between regions in the last sweep; 1 before the first sweep.
  double residual() const { return residual_; }
  std::uint64_t sweeps() const { return sweeps_; }

 private:
  struct Factor {
    std::uint32_t outer, runs;
    std::int64_t begin;  // offset of its logarithms
  };
  struct Outer {
    std::int64_t begin, cells;  // offset and size of its belief
    std::vector<std::uint32_t> factors, edges;
  };
  struct Inner {
    std::int64_t begin, cells;  // offset and size of its belief
    std::size_t first, last;    // range of its edges
    double number;              // counting number of its entropy

    double convex_number() const { return std::max(number, 0.0); }
  };
  struct Edge {
    std::uint32_t outer, inner, runs;
    std::int64_t begin;  // offset of its message
  };

  std::uint32_t number_of(Runs runs);
  void set_factors(const Outer& outer, double* table) const;
  void refresh(const Outer& outer);
  void refresh_all();
  double update(std::size_t inner, double damping);
  double move_tangent(std::size_t inner);
  void multiply_by_exponential(const Edge& edge, double* logs);
  bool sweep(double damping);
  bool look(std::int64_t cells);

  std::vector<std::int64_t> sizes_;
  ScopeList outer_scopes_, inner_scopes_;
  std::vector<Outer> outer_;
  std::vector<Inner> inner_;
  std::vector<Edge> edges_;  // ordered by inner region
  std::vector<Factor> factors_;
  std::vector<Runs> runs_;
  std::map<Runs, std::uint32_t> run_numbers_;
  std::vector<double> logs_;                   // logarithms of the factors
  std::vector<double> beliefs_;                // beliefs of the outer regions
  std::vector<double> messages_;               // logarithms of the messages; minus infinity: a forbidden state
  std::vector<double> inner_logs_, tangents_;  // logarithms of the inner regions' beliefs; tangent points
  std::vector<double> margins_, margin_logs_, sums_, table_;
  double residual_ = 1;
  std::uint64_t sweeps_ = 0;
  std::int64_t looked_ = 0;
  bool is_tangent_ = false, has_zeros_ = false;
};

}  // namespace elimina::approx
