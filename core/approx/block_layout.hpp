// Addition between a block of a table's columns and a table over some of its axes.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::approx {

// The cells of another table that those of a block meet. The block's last axes are runs: of cells that follow each other in the other
// table, too, or that all meet one cell.
class BlockLayout {
 public:
  // `sizes`: of the block's axes; `strides`: of the other table along them, 0 along one that it lacks.
  void set(std::span<const i64> sizes, std::span<const i64> strides);

  // Adds the other table's cells to the block's, or replaces these.
  void spread(const double* source, double* block, bool replaces) const;

  // Adds the block's cells to those of the other table.
  void gather(const double* block, double* target) const;

 private:
  i64 run_ = 1;
  bool is_repeated_ = false;
  std::vector<int> offsets_;  // of each run
};

}  // namespace elimina::approx
