// Exact minimisation of a WCSP by elimination with sparse tables, in which rows that no better solution can have are dropped.
#pragma once
#include <functional>

#include "network/network.hpp"

namespace elimina::filter {

using namespace network;

// Called now and then with bounds on the optimum, and with the best solution if it is new (else null); false: stop.
using Poll = std::function<bool(Cost lower, Cost upper, const std::vector<int>* value)>;

struct Options {
  double seconds;         // after which it stops with what it has
  std::size_t most_rows;  // of any table, which memory allows
  std::uint64_t seed;
  Poll poll;
};

struct Report {
  std::vector<int> value;  // of the best solution, empty if none was found
  Cost cost = forbidden, bound = 0;
  std::uint64_t made = 0, kept = 0, slices = 0, eliminations = 0;
  std::size_t largest = 0;                                           // rows of a message
  std::size_t bytes = 0;                                             // of rows at most
  double shifting = 0, climbing = 0, bounding = 0, eliminating = 0;  // seconds
};

// Costs are at least 0; their sum, of those that are not forbidden, is below 2^38. The optimum is proven if the bound is at least its
// cost (or the model's upper bound, where no solution was found).
Report minimise(const Network& network, const Options& options);

// An equivalent model whose constant is a strong lower bound, unary costs as its last factors; solutions from the model's upper bound
// on are lost, and the constant is above it where no others are. Ends when a pass gains less, after so many seconds, or when `poll`
// (with the bound, and the model's upper one) says so.
Network shift(const Network& network, double seconds, Cost least_gain, const Poll& poll);

}  // namespace elimina::filter
