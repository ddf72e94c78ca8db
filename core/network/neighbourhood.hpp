// Sets of variables that change together: small enough to be solved exactly by elimination, while the others keep their values.
#pragma once
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "network/view.hpp"

namespace elimina::network {

// Variables in elimination order; the separator of each are those that follow it and that its message is about.
struct Neighbourhood {
  std::vector<Var> order;
  std::vector<std::vector<Var>> separators;
};

class Neighbourhoods {
 public:
  explicit Neighbourhoods(const View& view);

  // Draw a neighbourhood of a connected part of the graph, of so many variables. Those that a table of more than `cells` cells would take to
  // eliminate are left out, at random.
  Neighbourhood draw(std::size_t variables, double cells, std::mt19937_64& random);

 private:
  std::vector<Var> connected(std::size_t variables, std::mt19937_64& random);

  std::vector<double> logs_;  // of the sizes
  std::vector<std::vector<Var>> neighbours_;
  std::vector<int> place_;  // in the part; -1: outside
};

}  // namespace elimina::network
