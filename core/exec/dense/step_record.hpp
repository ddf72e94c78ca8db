// A step record (elimina/program.hpp) that is built while a program runs; a simple rule splits its axes.
#pragma once
#include <vector>

#include "elimina/config.hpp"
#include "elimina/program.hpp"

namespace elimina {

class StepRecord {
 public:
  // Begins a record without axes and tables. `weight`: the bits of a double.
  void start(i64 variable, i64 domain, i64 out, i64 weight);

  // Adds an axis, slow to fast; all axes come before the first table.
  void add_axis(i64 size, i64 stride, i64 variable) { axes_.push_back({size, stride, variable}); }
  i64 axes() const { return i64(axes_.size()); }

  // Splits the axes into slow, middle and fast ones: middle ones begin at `mid`, fast ones at `lo` or later. A group
  // with few cells takes further axes.
  void split(i64 mid, i64 lo);

  // Adds a table; returns the address of its strides, which are 0 until the caller sets them, before the next table.
  i64* add_table(i64 offset, i64 domain_stride, i64 source);

  // Appends the record; returns the start of each table's part within the words.
  const std::vector<i64>& append_to(std::vector<i64>& words);

  // Number of tables read for each combination; valid after `append_to`.
  i64 streamed() const { return streamed_; }

 private:
  struct Axis {
    i64 size, stride, variable;
  };
  struct Table {
    i64 offset, domain_stride, source;
  };

  i64 cells(i64 first, i64 last) const;
  int group(i64 table) const;

  std::vector<Axis> axes_;
  std::vector<Table> tables_;
  std::vector<i64> strides_;  // strides of each table along each axis
  std::vector<i64> table_offsets_;
  std::vector<int> groups_;
  i64 variable_ = 0, domain_ = 0, out_ = 0, weight_ = 0, mid_ = 0, lo_ = 0, streamed_ = 0;
};

}  // namespace elimina
