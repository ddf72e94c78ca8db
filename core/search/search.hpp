// Minimisation by AND/OR branch and bound, which improves a lower and an upper bound until they meet.
#pragma once
#include <functional>
#include <vector>

#include "problem.hpp"

namespace elimina::search {

// Called about five times a second from the calling thread, with the best solution if it is new (else null); false
// stops the search.
using Poll = std::function<bool(double lower, double upper, std::uint64_t nodes, const std::vector<int>* value)>;

struct Options {
  double upper;            // only solutions below this cost count
  std::vector<int> start;  // an initial solution; may be empty
  double seconds;
  std::uint64_t nodes;  // number of expanded OR nodes and entered AND nodes
  int threads;
  std::size_t memory;  // memory of the cache in bytes
  std::uint64_t seed;
  Poll poll;
};

// An improvement of a bound: its time, both bounds, and the nodes so far.
struct Event {
  double seconds, lower, upper;
  std::uint64_t nodes;
};

struct Report {
  std::vector<int> value;  // values of the best solution; empty if there is none
  double cost = infinite, bound = -infinite;
  std::uint64_t nodes = 0, hits = 0, entries = 0;
  std::size_t bytes = 0;                 // bytes of the cache
  double seconds = 0, first = infinite;  // seconds of the search, and until the first solution
  std::vector<Event> events;
};

// Searches for the best solution. In a proven answer, the bound equals the cost, or the given upper bound if no
// solution is below it. Integral costs are exact, others within a relative 1e-9 of the optimum. Runs of one thread that
// end before the time limit are reproducible.
Report search(const Problem& problem, const Options& options);

}  // namespace elimina::search
