// The Boolean of a reified (b <-> c) or half-reified (b -> c) constraint. Without a Boolean, the constraint has to
// hold.
#pragma once
#include "engine.hpp"

namespace elimina::cp {

struct Control {
  enum class Mode : std::uint8_t { always, implies, equals };

  Mode mode = Mode::always;
  View b{};

  static Control reified(View b) { return {Mode::equals, b}; }
  static Control implied(View b) { return {Mode::implies, b}; }

  void attach(Engine& engine, Propagator& propagator) const {
    if (mode != Mode::always) engine.subscribe(propagator, b, kFix);
  }

  bool demanded(const Domains& d) const { return mode == Mode::always || d.lo(b) == 1; }
  bool denied(const Domains& d) const { return mode == Mode::equals && d.hi(b) == 0; }
  // True if the constraint is half-reified and its Boolean is false.
  bool idle(const Domains& d) const { return mode == Mode::implies && d.hi(b) == 0; }

  // Sets the Boolean if its value follows from `holds` (true if the constraint holds, false if it is violated), and
  // returns the outcome.
  Outcome settle(Domains& d, bool holds) const {
    if (mode == Mode::always) return holds ? Outcome::entailed : Outcome::failed;
    if (holds && mode == Mode::implies) return Outcome::entailed;
    return d.assign(b, holds) ? Outcome::entailed : Outcome::failed;
  }
};

}  // namespace elimina::cp
