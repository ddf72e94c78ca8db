// Translated steps of few combinations. They contain no values of tables, but for each block of output cells the
// positions of its operands in each table.
#pragma once
#include <cstdint>
#include <vector>

#include "elimina/program.hpp"

namespace elimina {

class SmallProgram {
 public:
  // `lanes`: values in a vector; `permutes`: any permutation of two vectors is one instruction.
  SmallProgram(int lanes, bool permutes) : lanes_(lanes), permutes_(permutes) {}

  // Translates a step; returns its number among the translated steps.
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
  // Offsets of a block's cells in a table. If the cells lie within `span` elements from `first` on, `permutations_` has
  // their positions among these. If the cells are too far apart, `span` is 0, and `scattered_` lists the offsets from
  // `first` on.
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
