#include "diver.hpp"

#include <algorithm>

namespace elimina::search {

namespace {

// For each variable: nodes between two dives, and cells that a local search visits.
constexpr std::uint64_t nodes_between = 32, cells_of_climb = 200;
// The first local searches find most: they may take longer.
constexpr std::uint64_t first_dives = 4, first_cells = 10'000;

}  // namespace

Diver::Diver(const Problem& problem, const Cache& cache, std::uint64_t seed)
    : problem_(problem), greedy_(problem, &cache, seed), climber_(problem, seed) {}

std::vector<int> Diver::solution(double gap) {
  constexpr double widths[] = {0, 1.0 / 16, 0, 1.0 / 128};
  const auto variables = static_cast<std::uint64_t>(problem_.size.size());
  const double width = gap < infinite ? gap : 1;
  climber_.start(greedy_.run(width * widths[count_ % 4]));
  climber_.run(variables * (count_ < first_dives ? first_cells : cells_of_climb));
  if (++count_ >= first_dives) next_ += variables * nodes_between;
  return climber_.best();
}

}  // namespace elimina::search
