#include "exec/dense/small_program.hpp"

#include <algorithm>

#include "exec/dense/layout.hpp"
#include "exec/paths.hpp"

namespace elimina {

SmallProgram::~SmallProgram() = default;

i64 SmallProgram::add(StepView step) {
  const i64 cells = step.cells(), axes = step[kAxes], tables = step[kTables];
  count_path(Path::small);
  steps_.push_back({step[kDomain], tables, i64(tables_.size()), i64(windows_.size()), i64(blocks_.size()), 0});
  out_.resize(std::size_t(cells));
  fill_offsets(out_.data(), step, 0, axes, [&](i64 axis) { return step.out_stride(axis); });
  offsets_.resize(std::size_t(cells * tables));
  for (i64 t = 0; t < tables; ++t) {
    const TableView table = step.table(t);
    tables_.push_back({table.offset(), table.domain_stride(), table.source()});
    fill_offsets(offsets_.data() + t * cells, step, 0, axes, [&](i64 axis) { return table.stride(axis); });
  }
  for (i64 cell = 0, count; cell < cells; cell += count) {
    for (count = 1; count < lanes_ && cell + count < cells && out_[cell + count] == out_[cell] + count;) ++count;
    blocks_.push_back({step[kOut] + out_[cell], count});
    for (i64 t = 0; t < tables; ++t) add_window(offsets_.data() + t * cells + cell, int(count));
  }
  steps_.back().blocks = i64(blocks_.size()) - steps_.back().first_block;
  return i64(steps_.size()) - 1;
}

void SmallProgram::add_window(const i32* offsets, int count) {
  const auto [low, high] = std::minmax_element(offsets, offsets + count);
  const bool is_near = permutes_ && *high - *low < kWindows * lanes_;
  count_path(is_near ? Path::small_permuted : Path::small_scattered);
  windows_.push_back({is_near ? *low : i32(scattered_.size()), is_near ? *high - *low + 1 : 0});
  for (int j = 0; j < lanes_; ++j) {
    const i32 offset = offsets[std::min(j, count - 1)];
    if (permutes_) permutations_.push_back(is_near ? std::uint8_t(offset - *low) : 0);
    if (!is_near) scattered_.push_back(offset);
  }
}

}  // namespace elimina
