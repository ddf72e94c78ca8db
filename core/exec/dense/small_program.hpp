// Translated steps of few combinations, without their values: where a block of output cells finds its cells in each
// table.
#pragma once
#include <cstdint>
#include <vector>

#include "elimina/program.hpp"

namespace elimina {

class SmallProgram {
 public:
  // `lanes`: values in a vector; `permutes`: any permutation of two vectors is one instruction.
  SmallProgram(int lanes, bool permutes) : lanes_(lanes), permutes_(permutes) {}

  // Returns the step's number among translated ones.
  i64 add(StepView step);

 protected:
  ~SmallProgram();

  struct Step {
    i64 domain, tables, first_table, first_window, first_block, blocks;
  };
  struct Table {
    i64 offset, domain_stride, source;
  };
  struct Block {
    i64 out, cells;
  };
  // Offsets of a block's cells in a table: within `span` elements from `first` on, by `permutations_`; or, if `span` is
  // 0 because they are too far apart, the list in `scattered_` from `first` on.
  struct Window {
    i32 first, span;
  };

  std::vector<Step> steps_;
  std::vector<Table> tables_;
  std::vector<Window> windows_;
  std::vector<Block> blocks_;
  std::vector<std::uint8_t> permutations_;  // [window][lane], if vectors are permuted
  std::vector<i32> scattered_;

 private:
  void add_window(const i32* offsets, int count);

  int lanes_;
  bool permutes_;
  std::vector<i32> out_, offsets_;
};

}  // namespace elimina
