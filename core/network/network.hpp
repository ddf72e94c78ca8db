// A cost-function network with integer costs, all at least 0, and bounds on its optimum.
#pragma once
#include <vector>

#include "network/view.hpp"

namespace elimina::network {

using Cost = std::int64_t;
// Cost of a forbidden cell; sums of a few thousand of these do not overflow.
inline constexpr Cost forbidden = Cost{1} << 50;

inline Cost add(Cost a, Cost b) { return a + b < forbidden ? a + b : forbidden; }

// A table of costs, in which the last variable of the scope varies fastest.
struct Function {
  std::vector<Var> scope;
  std::vector<std::size_t> stride;
  std::vector<Cost> cost;

  int arity() const { return static_cast<int>(scope.size()); }
  std::size_t cell(const std::vector<int>& value) const {
    std::size_t cell = 0;
    for (std::size_t i = 0; i < scope.size(); ++i) cell += stride[i] * static_cast<std::size_t>(value[scope[i]]);
    return cell;
  }
};

// An occurrence of a variable: number of a function, and position in its scope.
struct Occurrence {
  int function, position;
};

struct Network {
  std::vector<int> size;
  std::vector<Function> functions;  // functions without variables are added to `constant` instead
  Cost constant = 0;
  Cost upper = forbidden;  // solutions cost less than this

  int count() const { return static_cast<int>(size.size()); }

  // Adds a function; the cost of a function without variables is added to the constant.
  void add_function(std::vector<Var> scope, std::vector<Cost> cost);

  // Returns the cost of an assignment.
  Cost at(const std::vector<int>& value) const;

  // Appends the costs of a variable's values in its functions, while all other variables keep their values. `places`:
  // functions and positions of the variable.
  void list_costs(const std::vector<int>& value, Var v, const std::vector<Occurrence>& places,
                  std::vector<Cost>& costs) const;

  // Functions and positions of each variable.
  std::vector<std::vector<Occurrence>> touching() const;

  View view() const;
};

// Calls a function for each cell of a table over a scope, with the values that the scope's variables have in the cell.
template <class Visit>
void for_each_cell(const std::vector<int>& size, const std::vector<Var>& scope, Visit visit) {
  std::vector<int> digit(scope.size(), 0);
  for (;;) {
    visit(digit);
    std::size_t i = scope.size();
    for (;; digit[i] = 0) {
      if (i-- == 0) return;
      if (++digit[i] < size[scope[i]]) break;
    }
  }
}

// Multiplies all costs by `by`, so that fractions of the original unit can be shifted.
void scale(Network& network, Cost by);

// Adds each function to another one whose scope contains its own, if there is one.
void absorb(Network& network);

// Returns the network with only the remaining values, which are listed in order. Variables with one value disappear.
Network restrict(const Network& network, const std::vector<std::vector<int>>& remaining_values);

// Returns a quick elimination order: the best of a few randomised ones.
std::vector<Var> min_fill(const Network& network, int rounds, std::uint64_t seed);

// Returns the network whose variables are numbered by their positions in the order.
Network renumber(const Network& network, const std::vector<Var>& order);

}  // namespace elimina::network
