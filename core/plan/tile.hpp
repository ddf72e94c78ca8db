// Splits a step's output axes into slow, middle and fast ones (why: elimina/program.hpp).
#pragma once
#include "plan/lists.hpp"

namespace elimina::plan {

// Cells from which a row of trailing axes starts at a multiple of the vector size: padding then costs little.
constexpr i64 kRowCells = 1024, kLongRowBytes = 64;

constexpr i64 kSmallWork = 4096;             // combinations below which a step is not worth a split
constexpr i64 kHopelessWork = i64{1} << 56;  // and above which it is planned for its figures alone

// Axes by position in the output's scope, tables by position in the step's list.
struct Tile {
  std::vector<int> outer, mid, lo;
  std::vector<int> tables_a, tables_b, streamed;
};

// A step whose tables have been looked at: for each table the axes of the output that it has.
struct StepShape {
  i64 domain;                             // values of the eliminated variable
  std::vector<i64> sizes;                 // of the output's axes, slow to fast
  std::vector<std::vector<int>> members;  // axes of each table
};

// Position of the first axis of a table's rows: the trailing axes up to where a padding is due, or the first axis.
int row_axes(std::span<const i64> sizes);

// The split with the fewest streamed tables, then with rows long enough. `rows`: position of the first axis of the output's
// rows; -1: where `row_axes` puts it.
Tile choose_tile(const StepShape& shape, int rows);

// Tells lhs, rhs and streamed tables apart for the tile's axes.
void classify(Tile& tile, const StepShape& shape);

}  // namespace elimina::plan
