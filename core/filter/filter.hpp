// Exact minimisation of a WCSP by elimination with sparse tables; rows that cannot be part of a better solution are
// dropped.
#pragma once
#include <functional>

#include "network/solutions.hpp"

namespace elimina::filter {

using namespace network;

// Called regularly with a bound on all solutions that are not kept, the cost of the best solution, and its values if
// they are new (else null); false: stop.
using Poll = std::function<bool(Cost lower, Cost upper, const std::vector<int>* value)>;

struct Options {
  double seconds;         // time limit
  std::size_t most_rows;  // largest number of rows of a table, by memory
  std::uint64_t seed;
  Poll poll;
  std::size_t count = 1;   // number of best solutions to find
  std::vector<int> start;  // values of a known solution; if empty, a solution is searched for
};

struct Report {
  std::vector<Solution> solutions;  // the best ones
  Cost bound = 0;                   // lower bound on the cost of all other solutions
  std::uint64_t made = 0, kept = 0, slices = 0, eliminations = 0;
  std::size_t largest = 0;                                           // largest number of rows of a message
  std::size_t bytes = 0;                                             // largest number of bytes of rows
  double shifting = 0, climbing = 0, bounding = 0, eliminating = 0;  // seconds of each phase
};

// Finds the best solutions. Costs have to be at least 0, and the sum of all finite costs below 2^38. The solutions are
// proven to be the best if the bound is at least the cost of the last one (or the model's upper bound, if there are
// fewer than `count`).
Report minimise(const Network& network, const Options& options);

// Returns an equivalent model whose constant is a strong lower bound, with unary costs as its last factors. Solutions
// that cost at least the model's upper bound are lost; if no other solution exists, the constant is above this upper
// bound. Ends when a pass gains less than `least_gain`, after `seconds`, or when `poll` (with the bound, and the
// model's upper bound) returns false.
Network shift(const Network& network, double seconds, Cost least_gain, const Poll& poll);

}  // namespace elimina::filter
