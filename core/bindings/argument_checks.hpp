// Checks of arguments that several bindings take.
#pragma once
#include <nanobind/nanobind.h>

#include <algorithm>
#include <ranges>

// Raises ValueError unless each variable has at least one value.
template <std::ranges::range Sizes>
void check_sizes(const Sizes& sizes) {
  if (std::ranges::any_of(sizes, [](auto size) { return size < 1; }))
    throw nanobind::value_error("each variable has a value");
}

// Raises ValueError unless both are in range. `tolerance`: change of a message that counts as converged. `damping`:
// share of the old message in an update.
inline void check_damping(double tolerance, double damping) {
  if (!(tolerance >= 0) || !(damping >= 0 && damping < 1))
    throw nanobind::value_error("the tolerance is at least 0, the damping in [0, 1)");
}
