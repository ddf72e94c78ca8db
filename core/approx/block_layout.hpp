// Addition between a block of a table's columns and a table over some of its axes.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// Cells of another table that correspond to those of a block. The block's last axes are runs: consecutive cells of the
// other table, too, or one cell for all.
class BlockLayout {
 public:
  // `sizes`: sizes of the block's axes; `strides`: strides of the other table along them, 0 along an axis that it
  // lacks.
  void set(std::span<const i64> sizes, std::span<const i64> strides);

  // Adds the other table's cells to the block's, or overwrites the block's cells with them.
  void spread(const double* source, double* block, bool replaces) const;

  // Adds the block's cells to those of the other table.
  void gather(const double* block, double* target) const;

 private:
  i64 run_ = 1;
  bool is_repeated_ = false;
  std::vector<int> offsets_;  // offset of each run
};

}  // namespace elimina::approx
