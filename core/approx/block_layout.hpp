// Addition of a table to a block (some columns of a larger table), and of a block to a table.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// Map from the cells of a block to the cells of another table. A block consists of runs: consecutive cells that
// correspond either to consecutive cells of the other table or all to one cell.
class BlockLayout {
 public:
  // Sets the runs. `sizes`: sizes of the block's axes; `strides`: strides of the other table along these axes, 0 along
  // an axis that the other table lacks.
  void set(std::span<const i64> sizes, std::span<const i64> strides);

  // Adds the other table's cells to the block's cells, or overwrites these if `replaces` is true.
  void spread(const double* source, double* block, bool replaces) const;

  // Adds the block's cells to those of the other table.
  void gather(const double* block, double* target) const;

 private:
  i64 run_ = 1;
  bool is_repeated_ = false;
  std::vector<int> offsets_;  // for each run, its offset in the other table
};

}  // namespace elimina::approx
