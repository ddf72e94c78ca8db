// Counts in integers of any length. Residues (decision 4) run a program once for every 31 bits of the count; where these are many, one run
// in long integers takes a hundredth of that, because most of its work is to add them.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina {

// An integer's words, the least first; none: 0.
using LongInteger = std::vector<u64>;

// The product of the values of some steps' outputs, each of one cell. `factors`: 1 where something is allowed, else 0. Throws Stopped.
LongInteger exact_count(std::span<const i64> words, std::span<const i64> starts, std::span<const i64> roots,
                        const u64* factors);

}  // namespace elimina
