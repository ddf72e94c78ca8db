#include <chrono>

#include "filter.hpp"
#include "shift.hpp"
#include "stop.hpp"

namespace elimina::filter::ELIMINA_ISA {

Network shifted(const Network& network, double seconds, Cost least_gain, const Poll& poll) {
  const auto start = std::chrono::steady_clock::now();
  const TimeLimit limit(seconds);
  Shifter shifter(network);
  for (Cost before = -1; !shifter.infeasible();) {
    shifter.run(1, 0);
    if (shifter.bound() - before < least_gain) break;
    before = shifter.bound();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (taken.count() > seconds || !poll(before, network.upper, nullptr)) break;
  }
  return shifter.network();
}

}  // namespace elimina::filter::ELIMINA_ISA
