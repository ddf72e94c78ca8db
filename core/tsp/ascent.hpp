// Held and Karp's multipliers of cities (Mathematical Programming 1, 1971), improved by subgradient steps on a graph
// with a few edges for each city. Floating-point numbers suffice: only the bound of a complete 1-tree is reported, and
// that is computed in whole numbers.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "distances.hpp"
#include "one_tree.hpp"

namespace elimina::tsp {

class Ascent {
 public:
  // The graph may grow between calls. Cities at the same site have equal multipliers in some best solution, so they
  // get equal ones.
  Ascent(const Graph& graph, std::vector<int> site);

  // Returns Held and Karp's value of multipliers: the changed length of a 1-tree that is minimum up to the rounding of
  // keys, minus twice the sum of the multipliers.
  double value(const std::vector<double>& multipliers);

  // Makes steps from `tried` on, with lengths that shrink geometrically from `first` to `last`, and keeps the
  // multipliers of the largest value in `best`. Ends early when the value is above `enough`.
  void climb(std::vector<double>& best, std::vector<double>& tried, double first, double last, int steps,
             double enough);

 private:
  void sort();
  int root(int city);
  bool find_direction();

  const Graph& graph_;
  std::vector<int> site_;
  std::vector<double> sums_at_site_, cities_at_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order_, sorted_;  // keys and edges
  std::vector<int> above_, degree_, before_;
  std::vector<double> direction_;
};

}  // namespace elimina::tsp
