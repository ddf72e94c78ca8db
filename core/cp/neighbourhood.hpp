// Large neighbourhood search: chooses the part of the best solution that is kept while the rest is searched again
// (Shaw, CP 1998).
#pragma once
#include <optional>

#include "branching.hpp"

namespace elimina::cp {

struct Relaxation {
  Views xs;
  // Probability with which each variable is fixed to its value in the best solution; it stays open if propagation then
  // fails. If the probability is not set, the size of the neighbourhood adapts.
  std::optional<double> kept;
};

class Neighbourhood {
 public:
  explicit Neighbourhood(Relaxation relaxation) : relaxation_(std::move(relaxation)) {}

  // Assigns values of `best`, each on a new level, and propagates.
  void fix(Engine& engine, const Values& best, Random& random);

  // Call `widen` after a neighbourhood was searched completely within its limit of failures: it enlarges the next ones.
  // Call `narrow` if the limit was reached first: it shrinks the next ones.
  void widen();
  void narrow();

 private:
  void fix_share(Engine& engine, const Values& best, Random& random);
  void fix_until_small(Engine& engine, const Values& best, Random& random, bool guided);
  std::size_t most_affected(const Domains& d, const std::vector<double>& sizes,
                            const std::vector<std::size_t>& open) const;
  double total(const Domains& d) const;

  Relaxation relaxation_;
  double free_ = 0.25;  // share of the logarithm of the number of assignments that stays open
};

}  // namespace elimina::cp
