// Bucket elimination with sparse tables; rows that cannot be part of a solution within the budget are never stored.
#pragma once
#include <functional>
#include <optional>

#include "tree.hpp"

namespace elimina::filter {

struct Filter {
  int bits = 14;                         // bounds of a stage have at most 2^bits cells a table
  std::size_t most = SIZE_MAX;           // rows of a message kept at most, those of least bound
  std::uint64_t most_made = UINT64_MAX;  // candidate rows, after which it gives up
  std::size_t most_stored = SIZE_MAX;    // rows of a table in the making, likewise
  std::function<bool()> goes_on;         // asked now and then
};

struct Outcome {
  std::optional<std::vector<int>> value;  // an assignment of least cost among those found
  Value unseen = never;                   // no assignment that was missed costs less
  bool aborted = false;                   // stopped, or too many rows were made or stored
  std::uint64_t made = 0, kept = 0;
  std::size_t largest = 0;
  std::size_t bytes = 0;  // of rows at most
};

Outcome filtered_elimination(const Tree& tree, const Bounds& bounds, const Filter& filter);

}  // namespace elimina::filter
