// Sets of variables that change together: elimination can solve them exactly while all other variables keep their
// values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "network/view.hpp"

namespace elimina::network {

// A set of variables in elimination order. The separator of a variable lists the later variables in the scope of its
// message.
struct Neighbourhood {
  std::vector<Var> order;
  std::vector<std::vector<Var>> separators;
};

class Neighbourhoods {
 public:
  explicit Neighbourhoods(const View& view);

  // Draws `variables` variables, connected where possible. While elimination needs a table of more than `cells` cells,
  // one of the variables is dropped at random; variables with many neighbours are dropped more often.
  Neighbourhood draw(std::size_t variables, double cells, std::mt19937_64& random);

 private:
  std::vector<Var> connected(std::size_t variables, std::mt19937_64& random);

  std::vector<double> logs_;  // logarithms of the sizes
  std::vector<std::vector<Var>> neighbours_;
  std::vector<int> position_;  // position of each variable in the set that is drawn; -1: outside of it
};

}  // namespace elimina::network
