// A WCSP with integer costs, all at least 0, and what is known of its optimum.
#pragma once
#include <cstdint>
#include <vector>

#include "network/view.hpp"

namespace elimina::filter {

using Cost = std::int64_t;
using network::Var;
// Sums of a few thousand forbidden costs still fit.
inline constexpr Cost forbidden = Cost{1} << 50;

inline Cost add(Cost a, Cost b) { return a + b < forbidden ? a + b : forbidden; }

// The last variable of the scope varies fastest.
struct Factor {
  std::vector<Var> scope;
  std::vector<Cost> cost;
};

struct Model {
  std::vector<int> size;
  std::vector<Factor> factors;
  Cost constant = 0;
  Cost upper = forbidden;  // a solution costs less

  int count() const { return static_cast<int>(size.size()); }
  Cost at(const std::vector<int>& value) const;

  // The factors where they lie.
  network::View view() const;
};

// Multiplies all costs, so that fractions of the original unit can be shifted.
void scale(Model& model, Cost by);

// Adds up factors of one scope, and adds each factor to one that contains it.
void absorb(Model& model);

// Removes values (of which `kept` lists the others in order); variables of one value vanish from the factors.
Model restrict(const Model& model, const std::vector<std::vector<int>>& kept);

// A quick elimination order: the best of a few randomised ones.
std::vector<Var> min_fill(const Model& model, int rounds, std::uint64_t seed);

// Renames the variables by their place in the order.
Model renumber(const Model& model, const std::vector<Var>& order);

}  // namespace elimina::filter
