// Exact minimisation: cost shifting, an incumbent, filtered elimination under rising row limits, slices where that fails.
#pragma once
#include "filter.hpp"

namespace elimina::filter::ELIMINA_ISA {

Report solve(const Network& network, const Options& options);

}  // namespace elimina::filter::ELIMINA_ISA
