// Choice of the part of the best solution to keep while the rest is searched again (Shaw, CP 1998).
#pragma once
#include <optional>

#include "branching.hpp"

namespace elimina::cp {

struct Relaxation {
  Views xs;
  // Share of the variables that keep their values, as far as possible; none: adapted.
  std::optional<double> kept;
};

class Neighbourhood {
 public:
  explicit Neighbourhood(Relaxation relaxation) : relaxation_(std::move(relaxation)) {}

  // Gives variables their values, each on a level of its own, and propagates.
  void fix(Engine& engine, const Values& best, Random& random);

  // Tells whether the last neighbourhood was searched completely within its limit of failures.
  void widen();
  void narrow();

 private:
  void fix_share(Engine& engine, const Values& best, Random& random);
  void fix_until_small(Engine& engine, const Values& best, Random& random, bool guided);
  std::size_t most_affected(const Domains& d, const std::vector<double>& sizes,
                            const std::vector<std::size_t>& open) const;
  double total(const Domains& d) const;

  Relaxation relaxation_;
  double free_ = 0.25;  // of the logarithm of the number of assignments: how much is left to search
};

}  // namespace elimina::cp
