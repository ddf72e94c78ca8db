// Exact reductions of a network: the one that is left has the same optimum, and fewer variables.
#pragma once
#include <vector>

#include "network/network.hpp"

namespace elimina::network {

// Eliminates variables that cost no width (Larrosa and Dechter, "Boosting search with variable elimination", Constraints 8, 2003): those with
// one value that is allowed, those that another variable determines, and those with at most three neighbours. A function loses variables that
// it does not depend on. At least one variable stays.
class Reduction {
 public:
  // Variables are visited in this order, and again whenever one of their functions has changed.
  Reduction(const Network& network, const std::vector<Var>& order);

  const Network& rest() const { return rest_; }

  // Variables of the rest, by their numbers in the whole network.
  const std::vector<Var>& kept() const { return kept_; }

  // An assignment of all variables, of least cost for the values of the rest.
  std::vector<int> extend(const std::vector<int>& value) const;

 private:
  struct Eliminated {
    Var var;
    std::vector<Var> scope;
    std::vector<int> best;  // the value of the variable in each cell of the scope
  };

  // Functions of the whole network, and those that eliminations leave.
  class Work;

  std::vector<int> size_;
  std::vector<Eliminated> eliminated_;
  std::vector<Var> kept_;
  Network rest_;
};

}  // namespace elimina::network
