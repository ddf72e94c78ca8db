#include "solver.hpp"

#include <algorithm>

namespace elimina::cp {

View Solver::new_variable(const Values& values) {
  if (values.empty()) throw Refused("a variable has at least one value");
  Values sorted = values;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  const View x = new_variable(sorted.front(), sorted.back());
  if (sorted.back() - sorted.front() + 1 != static_cast<Value>(sorted.size())) post_member(engine_, x, std::move(sorted));
  return x;
}

View Solver::fixed(Value value) {
  const auto [place, is_new] = fixed_.try_emplace(value);
  if (is_new) place->second = new_variable(value, value);
  return place->second;
}

}  // namespace elimina::cp
