// Solutions for the search's incumbent: greedy dives along its bounds so far, each improved by a local search.
#pragma once
#include <vector>

#include "cache.hpp"
#include "greedy.hpp"
#include "network/local_search.hpp"

namespace elimina::search {

class GreedyDives {
 public:
  GreedyDives(const Problem& problem, const Cache& cache, std::uint64_t seed);

  // True if the search has done enough for another dive, so that dives take a small part of the search's time.
  bool is_due(std::uint64_t nodes) const { return nodes >= next_; }

  // Returns the best solution of a local search. The local search starts from a new dive in the first four calls and in
  // every other call after these. In all other calls, it continues where it ended. Every other dive is random, the more
  // so the wider the gap between the bounds.
  std::vector<int> solution(double gap);

 private:
  Greedy greedy_;
  network::LocalSearch local_;
  std::uint64_t values_, next_ = 0, count_ = 0;
};

}  // namespace elimina::search
