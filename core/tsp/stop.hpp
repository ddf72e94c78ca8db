// Stop test of long computations, called every few milliseconds. Their results stay usable.
#pragma once
#include <functional>

namespace elimina::tsp {

using Stop = std::function<bool()>;

constexpr int kCitiesBetweenStops = 32;  // that take a millisecond at most

}  // namespace elimina::tsp
