// Where each table lies in the arena.
#pragma once
#include <utility>

#include "plan/lists.hpp"

namespace elimina::plan {

// Strides of a table's axes, slow to fast, and the elements that it spans; its rows are padded to whole vectors.
struct TableLayout {
  std::vector<i64> strides;
  i64 span = 1;
};

// `rows`: position of the rows' first axis; -1: where `row_axes` puts it.
TableLayout lay_out_table(std::span<const i64> sizes, i64 itemsize, int rows);

// Hands out spans of one block of memory, reusing what was given back; keeps the height reached. Small spans follow each other
// closely, so that a chain of small messages stays in few lines of a cache; others start where long rows may.
class Arena {
 public:
  explicit Arena(i64 itemsize) : item_(itemsize) {}

  // Offset of a free span: the first that fits.
  i64 take(i64 span);
  // Leaves what is free below the height unused.
  void seal() { free_.clear(); }
  // Makes a span free again, merged with its free neighbours.
  void give_back(i64 offset, i64 span);
  i64 height() const { return height_; }

 private:
  struct Part {
    i64 offset, size;
    i64 end() const { return offset + size; }
  };
  i64 rounded(i64 span) const;

  i64 item_, height_ = 0;
  std::vector<Part> free_;  // by offset
};

}  // namespace elimina::plan
