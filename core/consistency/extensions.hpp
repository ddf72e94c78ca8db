// The best ways to give eliminated variables values, once all other variables have values.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "propagator.hpp"

namespace elimina::consistency {

// Assignments in the order of their costs (Lawler, 1972). Each differs from an earlier one in the value of an eliminated
// variable; all variables eliminated before it get their best values.
class Extensions {
 public:
  // `count`: most assignments to find.
  explicit Extensions(std::size_t count) : count_(count) {}

  // Begins with the values of all variables that are not eliminated. The propagator must not change before `end`.
  void start(const Propagator& propagator, const std::vector<int>& value);

  // Finds the next assignment that is cheaper than the top; false: there is none.
  bool next(const Propagator& propagator, Cost top, std::vector<int>& value);

  void end();
  bool is_started() const { return is_started_; }

 private:
  struct Deviation {
    std::shared_ptr<const std::vector<int>> value;  // values of the earlier assignment
    std::size_t rank;                               // place of the variable among the eliminated ones
    int other;                                      // its other value; -1: no variable
  };

  void add(Cost cost, Deviation deviation);

  std::size_t count_, remaining_ = 0;
  bool is_started_ = false;
  std::multimap<Cost, Deviation> open_;  // `remaining_` at most
  std::vector<std::pair<int, Cost>> costs_;
};

}  // namespace elimina::consistency
