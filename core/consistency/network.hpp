// Cost functions for soft local consistency: tables that never change, shared by all threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "network/network.hpp"

namespace elimina::consistency {

using network::Cost;
using network::Var;

// Cost of forbidden cells. It stays above every allowed cost, however costs are shifted.
inline constexpr Cost forbidden = Cost{1} << 60;

struct Function : network::Function {
  std::vector<Cost> transposed;  // for functions of two variables: the costs with the first one fastest
  // For each position, start of the costs that were shifted to the variable at this position, one for each of its
  // values.
  std::vector<std::size_t> shift;
  std::size_t base = 0;     // index of the cell of the first values
  bool is_counted = false;  // true: the table has a cell for each count, and strides of 1 or -1 (counted.hpp)

  std::size_t max_count = 0;  // largest allowed count

  bool counts(int position, int x) const { return (stride[position] == 1) == (x == 1); }
  const Cost* cells() const { return cost.data() + base; }
  Cost at(const std::vector<int>& value) const { return cost[base + cell(value)]; }

  // Fills `transposed`, given the variables' numbers of values.
  void transpose(const std::vector<int>& size);
};

// An occurrence of a variable in a function. `fresh`: a bit for each position of the function, set if the variable
// there occurs in no earlier function of this variable.
struct Occurrence : network::Occurrence {
  std::uint64_t fresh = ~std::uint64_t{0};
};

// A cost-function network whose variables are numbered by an order; costs are shifted towards the first variables.
struct Network {
  // Costs of the model must be at least 0; `order` is its elimination order. Throws std::invalid_argument if the order
  // is not a permutation of the variables, or a scope has a variable twice or more than 64 variables.
  Network(network::Network model, std::vector<Var> order);

  int count() const { return static_cast<int>(size.size()); }

  // Returns the cost of an assignment, constant included; at least `forbidden` if it is not allowed.
  Cost at(const std::vector<int>& value) const;

  // Appends the costs of a variable's values in its functions, while all other variables keep their values.
  void list_costs(std::vector<int>& value, Var v, std::vector<Cost>& costs) const;

  // `outer` translates an assignment of this network's variables to the model's numbering of variables, `inner` the
  // reverse.
  std::vector<int> outer(const std::vector<int>& value) const;
  std::vector<int> inner(const std::vector<int>& value) const;

  void note_fresh();

  std::vector<Var> order;  // for each variable, its number in the model: the elimination order reversed
  std::vector<int> size;
  std::vector<std::size_t> first;  // offset of each variable's unary costs
  std::vector<Cost> cells;         // initial state: unary costs, then zeros for shifted costs
  std::vector<Function> functions;
  std::vector<std::vector<Occurrence>> touching;
  Cost constant, upper;
};

}  // namespace elimina::consistency
