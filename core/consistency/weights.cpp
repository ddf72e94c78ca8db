// Weights of functions: 1, plus the number of their conflicts.
#include <limits>

#include "propagator.hpp"

namespace elimina::consistency {

bool Propagator::fail(Var v) {
  if (suspect_[v] < 0) return false;
  ++weight_[suspect_[v]];
  for (const Var u : network_.functions[suspect_[v]].scope) ++weight_of_all_[u];
  return false;
}

void Propagator::exchange_weights(std::vector<double>& of_all) {
  of_all.resize(weight_.size(), 1.0);
  for (std::size_t f = 0; f < weight_.size(); ++f) of_all[f] += weight_[f] - exchanged_[f];
  weight_ = exchanged_ = of_all;
  add_weights();
}

void Propagator::add_weights() {
  weight_of_all_.assign(network_.size.size(), 0);
  for (std::size_t f = 0; f < weight_.size(); ++f)
    for (const Var v : network_.functions[f].scope) weight_of_all_[v] += weight_[f];
}

double Propagator::most_weight(Var v) const {
  return added_[v].empty() ? weight_of_all_[v] : std::numeric_limits<double>::infinity();
}

double Propagator::weight(Var v) const {
  double total = 0;
  each_place(v, [&](const Occurrence& occurrence) {
    int q;
    if (free_positions(function(occurrence.function), occurrence.position, &q) > 0)
      total += weight_[origin_of(occurrence.function)];
    return true;
  });
  return total;
}

}  // namespace elimina::consistency
