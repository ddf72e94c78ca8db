// What long computations ask, every few milliseconds, to learn whether they have to end. Their results stay usable.
#pragma once
#include <functional>

namespace elimina::tsp {

using Stop = std::function<bool()>;

constexpr int kCitiesBetweenStops = 32;  // that take a millisecond at most

}  // namespace elimina::tsp
