// Exact reductions of a network: the reduced network has the same optimum and fewer variables.
#pragma once
#include <vector>

#include "network/network.hpp"

namespace elimina::network {

// Eliminates variables that are cheap to eliminate (Larrosa and Dechter, "Boosting search with variable elimination",
// Constraints 8, 2003): those with one allowed value, those that another variable determines, and those with at most
// three neighbours and a small bucket. Functions also lose variables on which they do not depend. At least one variable
// remains.
class Reduction {
 public:
  // Visits variables in this order, and again when one of their functions has changed.
  Reduction(const Network& network, const std::vector<Var>& order);

  const Network& rest() const { return rest_; }

  // Remaining variables, by their numbers in the whole network.
  const std::vector<Var>& kept() const { return kept_; }

  // Returns the assignment of all variables with the least cost, given values of the remaining ones.
  std::vector<int> extend(const std::vector<int>& value) const;

 private:
  struct Eliminated {
    Var var;
    std::vector<Var> scope;
    std::vector<int> best;  // value of the variable in each cell of the scope
  };

  // The network while variables are eliminated.
  class Work;

  std::vector<int> size_;
  std::vector<Eliminated> eliminated_;
  std::vector<Var> kept_;
  Network rest_;
};

}  // namespace elimina::network
