// Bounds that the constraints imply without any bounds of variables from the front end. The front end gives default
// limits to variables without bounds. A proof by a search within these limits is valid only if the implied bounds lie
// within the limits, too.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "solver.hpp"

namespace elimina::cp {

// A constraint as a front end posts it.
struct Statement {
  std::string name;
  std::vector<Argument> arguments;
};

struct Statements {
  std::vector<std::pair<Value, Value>> bounds;  // bounds of each variable
  std::vector<char> is_open;  // true for variables without bounds, for which `bounds` has the front end's limits
  std::vector<Statement> posts;
};

// Returns the open variables that may have values beyond their limits in a solution.
std::vector<int> variables_beyond_limits(const Statements& statements);

// True if no constraint keeps the objective from falling further and further, from any solution.
bool falls_without_end(const Statements& statements, View objective);

}  // namespace elimina::cp
