// Additions between a block, which is some columns of a table, and a second table over some of the first one's axes.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// Maps the cells of a block to cells of another table. The block consists of runs: consecutive cells that correspond to
// consecutive cells of the other table, or all to the same one.
class BlockLayout {
 public:
  // `sizes`: sizes of the block's axes; `strides`: strides of the other table along these axes, 0 along an axis that
  // the other table lacks.
  void set(std::span<const i64> sizes, std::span<const i64> strides);

  // Adds the other table's cells to the block's, or overwrites the block's cells with them.
  void spread(const double* source, double* block, bool replaces) const;

  // Adds the block's cells to those of the other table.
  void gather(const double* block, double* target) const;

 private:
  i64 run_ = 1;
  bool is_repeated_ = false;
  std::vector<int> offsets_;  // offset of each run in the other table
};

}  // namespace elimina::approx
