// Splits a step's output axes into slow, middle and fast ones (why: elimina/program.hpp).
#pragma once
#include "plan/lists.hpp"

namespace elimina::plan {

// Rows of trailing axes with at least kRowCells cells start at multiples of kLongRowBytes, whole vectors: padding costs
// little there.
constexpr i64 kRowCells = 1024, kLongRowBytes = 64;

constexpr i64 kSmallWork = 4096;             // a step with fewer combinations is not worth a split
constexpr i64 kHopelessWork = i64{1} << 56;  // a step with more combinations is planned for its figures alone

// Axes by position in the output's scope, tables by position in the step's list.
struct Tile {
  std::vector<int> outer, mid, lo;
  std::vector<int> tables_a, tables_b, streamed;
};

// The properties of a step by which its axes are split: sizes, and for each table the output's axes that it has.
struct StepShape {
  i64 domain;                             // number of combinations of values of the eliminated variables
  std::vector<i64> sizes;                 // sizes of the output's axes, slow to fast
  std::vector<std::vector<int>> members;  // axes of each table
};

// Returns the position of the first axis of a table's rows. Rows are the fewest trailing axes that need padding; if
// none do, all axes but the first one or, in a small table, all axes.
int row_axes(std::span<const i64> sizes);

// Returns the split of least estimated cost. A step that is not worth a split gets slow and fast axes only. `rows`:
// position of the first axis of the output's rows; -1: where `row_axes` puts it.
Tile choose_tile(const StepShape& shape, int rows);

// Sorts the tables into lhs, rhs and streamed ones by the tile's axes.
void classify(Tile& tile, const StepShape& shape);

}  // namespace elimina::plan
