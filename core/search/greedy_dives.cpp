#include "greedy_dives.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace elimina::search {

namespace {

// Number of nodes between two local searches (`nodes_between`), and number of cells that each of these visits
// (`cells_each`), both divided by the total number of the variables' values.
constexpr std::uint64_t nodes_between = 12, cells_each = 100;
// The first `first_dives` local searches improve most, so they may visit more cells.
constexpr std::uint64_t first_dives = 4, first_cells_each = 5'000, first_cells = 10'000'000;

}  // namespace

GreedyDives::GreedyDives(const Problem& problem, const Cache& cache, std::uint64_t seed)
    : greedy_(problem, cache, seed), local_(problem.factors_view(), seed),
      values_(std::accumulate(problem.size.begin(), problem.size.end(), std::uint64_t{0})) {}

std::vector<int> GreedyDives::solution(double gap) {
  constexpr double noise[] = {0, 1.0 / 16, 0, 1.0 / 128};
  const bool first = count_ < first_dives;
  if (first || count_ % 2 == 0)
    local_.start(greedy_.run((gap < infinite ? gap : 1) * noise[count_ / (first ? 1 : 2) % std::size(noise)]));
  local_.run(first ? std::min(first_cells, values_ * first_cells_each) : values_ * cells_each);
  if (++count_ >= first_dives) next_ += values_ * nodes_between;
  return local_.best();
}

}  // namespace elimina::search
