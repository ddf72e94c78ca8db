// The search for an order of least work: reductions, greedy runs, annealing of elimination trees, within a budget.
#pragma once
#include <memory>
#include <span>

#include "order/greedy.hpp"

namespace elimina::order {

struct Options {
  std::vector<Rule> rules;   // rules of the greedy runs
  bool anneal = true;        // true to improve orders by annealing
  std::int64_t rounds = -1;  // number of greedy runs and annealings; -1: until the time is up
  // Estimated seconds of an elimination for each cell of its buckets; a search takes at most a share of the time of the
  // elimination that it plans. 0: no such limit.
  double patience = 0;
  double limit = std::numeric_limits<double>::infinity();  // log2 of the most cells that a table may have
  std::uint64_t seed = 0;
  int threads = 1;
};

// Seconds of the shortest run that is worth a search for its order.
inline constexpr double worth_a_search = 0.2e-3;

// Share of a run's time that the search for its order may take. Of 227 searches, 28 took longer than their runs with a
// share of 0.15, and 56 with 0.25 (docs/decisions/0020-search.md).
inline constexpr double search_share = 0.15;

// A search in two parts; small problems need only the first one.
class Search {
 public:
  Search(const Graph& graph, const Options& options);
  ~Search();
  // Returns the order after reductions and a greedy run of each component.
  Order begin(Clock& clock);
  // Returns the order after further greedy runs and annealings. `clock` must already count the time of `begin`.
  Order improve(Clock& clock);

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

// Returns the number of cells of all buckets of a quick min-fill elimination of the scopes whose bits are set.
double cells_of_part(std::span<const double> sizes, std::span<const std::int64_t> offsets,
                     std::span<const Vertex> members, std::span<const std::uint8_t> bits);

}  // namespace elimina::order
