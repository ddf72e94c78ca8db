// Runs message passing until it converges, for the bindings of all classes that do so.
#pragma once
#include <cstdint>

#include "argument_checks.hpp"
#include "stop.hpp"
#include "unlocked.hpp"

namespace elimina::approx {

// Runs the message passing of a class. `rounds`: largest number of updates or sweeps, as the class counts them. Returns
// true if all messages have converged.
template <class Propagation>
bool run_propagation(Propagation& propagation, double tolerance, double damping, std::uint64_t rounds, double seconds) {
  check_damping(tolerance, damping);
  return unlocked([&] {
    const TimeLimit limit(seconds);
    return propagation.run(tolerance, damping, rounds);
  });
}

}  // namespace elimina::approx
