// Counts in integers of any length. Counting by residues (docs/decisions/0004-exact-counts.md) runs a program once for
// every 31 bits of the count. If there are many bits, one run in long integers takes a hundredth of that time, because
// it mostly adds.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina {

// Words of an integer, the lowest first; empty: 0.
using LongInteger = std::vector<u64>;

// Returns the product of the outputs of the steps `roots`, each of one cell. `factors`: 1 for allowed cells, else 0.
// Throws Stopped on a stop request.
LongInteger exact_count(std::span<const i64> words, std::span<const i64> starts, std::span<const i64> roots,
                        const u64* factors);

}  // namespace elimina
