// Reductions that come before any search for an order.
#pragma once
#include "order/remainder.hpp"

namespace elimina::order {

// Eliminates variables that need no search; returns them in order. The remainder holds the other variables.
Order reduce(Remainder& rest, Clock& clock);

}  // namespace elimina::order
