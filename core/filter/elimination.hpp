// Bucket elimination with sparse tables; rows that cannot be part of a solution within the budget are never stored.
#pragma once
#include <functional>

#include "tree.hpp"

namespace elimina::filter {

struct Filter {
  int bits = 14;                         // tables of bounds have at most 2^bits cells
  std::size_t max_rows = SIZE_MAX;       // largest number of rows of a message; the rows of least bounds stay
  std::uint64_t most_made = UINT64_MAX;  // largest number of candidate rows
  std::size_t most_stored = SIZE_MAX;    // largest number of rows of a table under construction
  std::size_t count = 1;                 // number of assignments to find
  std::function<bool()> goes_on;         // called regularly; false: stop
};

struct Outcome {
  std::vector<std::vector<int>> values;  // assignments of least cost among those of the rows
  Value unseen = never;                  // lower bound on the cost of all dropped assignments
  bool aborted = false;                  // true if it was stopped, or if too many rows were made or stored
  std::uint64_t made = 0, kept = 0;      // number of candidate rows, and of rows of messages
  std::size_t largest = 0;               // largest number of rows of a message
  std::size_t bytes = 0;                 // largest number of bytes of rows
};

Outcome filtered_elimination(const Tree& tree, const Bounds& bounds, const Filter& filter);

}  // namespace elimina::filter
