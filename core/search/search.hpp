// Minimisation by AND/OR branch and bound: both bounds, until they meet.
#pragma once
#include <functional>
#include <vector>

#include "problem.hpp"

namespace elimina::search {

// Called about five times a second, from the thread that called, with the best solution if it is new (else null); false: stop.
using Poll = std::function<bool(double lower, double upper, std::uint64_t nodes, const std::vector<int>* value)>;

struct Options {
  double upper;            // a solution that is no better is not looked for
  std::vector<int> start;  // a solution, or nothing
  double seconds;
  std::uint64_t nodes;  // OR nodes expanded and AND nodes entered
  int threads;
  std::size_t memory;  // bytes of the cache
  std::uint64_t seed;
  Poll poll;
};

// Time at which a bound improved.
struct Event {
  double seconds, lower, upper;
  std::uint64_t nodes;
};

struct Report {
  std::vector<int> value;  // of the best solution, empty if none was found
  double cost = infinite, bound = -infinite;
  std::uint64_t nodes = 0, hits = 0, entries = 0;
  std::size_t bytes = 0;                 // of the cache
  double seconds = 0, first = infinite;  // `first`: until a solution was found
  std::vector<Event> events;
};

// In a proven answer the bound equals the cost (or the given upper bound, if no solution is below it). Integral costs are exact, others
// within 1e-9 of the optimum, relatively. Runs of one thread that no time limit ends are reproducible.
Report search(const Problem& problem, const Options& options);

}  // namespace elimina::search
