// Held and Karp's multipliers of cities (Mathematical Programming 1, 1971), improved by subgradient steps on a graph of a few edges
// a city. Floating-point numbers are enough here: a bound counts only as that of a 1-tree of all edges in whole numbers.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "distances.hpp"
#include "one_tree.hpp"

namespace elimina::tsp {

class Ascent {
 public:
  // The graph may grow between calls. Cities at the same place have equal multipliers in some best solution, so they get them.
  Ascent(const Graph& graph, std::vector<int> place);

  // The value of the minimum 1-tree.
  double value(const std::vector<double>& multipliers);

  // Steps from `tried` on, of a length of `first` down to `last`, geometrically. It ends early above `enough`.
  void climb(std::vector<double>& best, std::vector<double>& tried, double first, double last, int steps,
             double enough);

 private:
  void sort();
  int root(int city);
  bool find_direction();

  const Graph& graph_;
  std::vector<int> place_;
  std::vector<double> at_place_, cities_at_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> order_, sorted_;  // keys and edges
  std::vector<int> above_, degree_, before_;
  std::vector<double> direction_;
};

}  // namespace elimina::tsp
