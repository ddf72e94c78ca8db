// Sum-product steps that are matrix products: out[batch][row][column] = sum over d of lhs[batch][d][row]
// rhs[batch][d][column]. Blocks of both tables are packed, and one tile of the output in registers is computed at a
// time (Goto and van de Geijn 2008, "Anatomy of high-performance matrix multiplication").
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "elimina/product.hpp"
#include "exec/dense/product_tile.hpp"
#include "exec/dense/tile.hpp"
#include "exec/paths.hpp"

namespace elimina::ELIMINA_ISA {

template <class R>
class ProductStep {
  using V = typename R::Value;
  static constexpr i64 kDepth = 1536 / i64(sizeof(V));           // number of values of d in a block
  static constexpr i64 kBlockColumns = 16 * kProductColumns<V>;  // columns of a block of the rhs, which stays in L2
  static constexpr i64 kBlockRows = 768;
  // Smallest blocks, if several threads share the step.
  static constexpr i64 kFewestRows = 64, kFewestColumns = 2 * kProductColumns<V>;
  static_assert(kBlockRows / 16 % kProductRows == 0, "halves of blocks hold whole panels");

 public:
  explicit ProductStep(V* arena) : arena_(arena) {}

  void begin(StepView step, const std::vector<Source<V>>& sources, i64 wanted_items) {
    step_ = step;
    a_ = &sources[0], b_ = &sources[1];
    domain_ = step[kDomain], columns_ = step[kLoCells];
    rows_ = batches_ = 1;
    row_axes_.clear(), batch_axes_.clear();
    for (i64 axis = 0; axis < step.lo_axis(); ++axis) {
      const bool is_batch = b_->view.stride(axis) != 0;
      (is_batch ? batch_axes_ : row_axes_).push_back(axis);
      (is_batch ? batches_ : rows_) *= step.size(axis);
    }
    fill(row_a_.offsets, row_axes_, rows_, [&](i64 axis) { return a_->view.stride(axis); });
    row_a_.find_contiguous_panels();
    fill(row_out_, row_axes_, rows_, [&](i64 axis) { return step.out_stride(axis); });
    std::vector<i64> lo;
    for (i64 axis = step.lo_axis(); axis < step[kAxes]; ++axis) lo.push_back(axis);
    fill(column_b_.offsets, lo, columns_, [&](i64 axis) { return b_->view.stride(axis); });
    column_b_.find_contiguous_panels();
    count_paths_taken();
    block_rows_ = kBlockRows, block_columns_ = kBlockColumns;
    while (items() < wanted_items && block_rows_ > kFewestRows) block_rows_ /= 2;
    while (items() < wanted_items && block_columns_ > kFewestColumns) block_columns_ /= 2;
  }

  i64 items() const { return batches_ * row_blocks() * column_blocks(); }

  // Items are independent, so threads may share them.
  void run(i64 first, i64 last, Workspace<R>& space, Peak& peak) const {
    V* a = space.a.reserve(whole(std::min(block_rows_, rows_), kProductRows) * kDepth);
    V* b = space.b.reserve(whole(std::min(block_columns_, columns_), kProductColumns<V>) * kDepth);
    for (i64 item = first; item < last; ++item) {
      const i64 column = item % column_blocks() * block_columns_, block_number = item / column_blocks();
      const i64 row = block_number % row_blocks() * block_rows_;
      block(block_number / row_blocks(), row, std::min(block_rows_, rows_ - row), column,
            std::min(block_columns_, columns_ - column), a, b, peak);
    }
  }

 private:
  // Cells of one side of the product, in panels of `width`.
  template <int width>
  struct Side {
    std::vector<i64> offsets;
    std::vector<char> is_contiguous;  // for each panel; false for a shorter last one

    // Checks every offset: transposed axes may have the same first and last offset as a contiguous panel.
    void find_contiguous_panels() {
      const i64 cells = i64(offsets.size());
      is_contiguous.assign((cells + width - 1) / width, false);
      for (i64 panel = 0; (panel + 1) * width <= cells; ++panel) {
        const i64* panel_offsets = offsets.data() + panel * width;
        bool follows = true;
        for (int i = 1; i < width; ++i) follows &= panel_offsets[i] == panel_offsets[0] + i;
        is_contiguous[panel] = follows;
      }
    }
  };

  void count_paths_taken() const {
    if (!are_paths_counted()) return;
    count_path(Path::product);
    if (batches_ > 1) count_path(Path::product_batch);
    for (const char is_contiguous : row_a_.is_contiguous)
      count_path(is_contiguous ? Path::product_contiguous_rows : Path::product_scattered_rows);
    for (const char is_contiguous : column_b_.is_contiguous)
      count_path(is_contiguous ? Path::product_contiguous_columns : Path::product_scattered_columns);
  }

  static i64 whole(i64 cells, i64 unit) { return (cells + unit - 1) / unit * unit; }
  i64 row_blocks() const { return (rows_ + block_rows_ - 1) / block_rows_; }
  i64 column_blocks() const { return (columns_ + block_columns_ - 1) / block_columns_; }

  // Sets the offset of each combination of values of some axes, the last axis fastest.
  template <class Stride>
  void fill(std::vector<i64>& offsets, const std::vector<i64>& axes, i64 count, Stride stride) const {
    offsets.assign(count, 0);
    i64 cells = 1;
    for (i64 position = i64(axes.size()) - 1; position >= 0; --position) {
      const i64 size = step_.size(axes[position]), hop = stride(axes[position]);
      for (i64 digit = 1; digit < size; ++digit)
        for (i64 i = 0; i < cells; ++i) offsets[digit * cells + i] = offsets[i] + digit * hop;
      cells *= size;
    }
  }

  void block(i64 batch, i64 row, i64 rows, i64 column, i64 columns, V* a, V* b, Peak& peak) const {
    const V *from_a = a_->data, *from_b = b_->data;
    V* out = arena_ + step_[kOut] + column;
    for (i64 position = i64(batch_axes_.size()) - 1; position >= 0; --position) {
      const i64 axis = batch_axes_[position], digit = batch % step_.size(axis);
      batch /= step_.size(axis);
      from_a += digit * a_->view.stride(axis), from_b += digit * b_->view.stride(axis),
          out += digit * step_.out_stride(axis);
    }
    for (i64 d = 0; d < domain_; d += kDepth) {
      const i64 depth = std::min(kDepth, domain_ - d);
      pack(from_a + d * a_->domain_stride, a_->domain_stride, row_a_, row, rows, depth, a_->scale, a);
      pack(from_b + d * b_->domain_stride, b_->domain_stride, column_b_, column, columns, depth, b_->scale, b);
      for (i64 i = 0; i < rows; i += kProductRows)
        for (i64 j = 0; j < columns; j += kProductColumns<V>) {
          alignas(64) V tile[kProductRows * kProductColumns<V>];
          multiply_tile(a + i * depth, b + j * depth, depth, tile);
          keep(tile, out + j, row_out_.data() + row + i, std::min<i64>(kProductRows, rows - i),
               std::min<i64>(kProductColumns<V>, columns - j), d == 0);
        }
    }
    for (i64 i = 0; i < rows; ++i) see(peak, out + row_out_[row + i], columns);
  }

  // Copies cells [begin, begin + count) of a side, where begin is the start of a panel: to[panel][d][width]. Missing
  // cells of the last panel are 0.
  template <int width>
  static void pack(const V* from, i64 hop, const Side<width>& side, i64 begin, i64 count, i64 depth, V scale, V* to) {
    for (i64 first = begin; first < begin + count; first += width, to += width * depth) {
      const i64 cells = std::min<i64>(width, begin + count - first);
      const i64* offsets = side.offsets.data() + first;
      if (cells == width && side.is_contiguous[first / width]) {
        for (i64 d = 0; d < depth; ++d)
          for (int i = 0; i < width; ++i) to[d * width + i] = from[offsets[0] + d * hop + i] * scale;
        continue;
      }
      if (cells < width) std::fill_n(to, width * depth, V(0));
      for (i64 i = 0; i < cells; ++i)
        for (i64 d = 0; d < depth; ++d) to[d * width + i] = from[offsets[i] + d * hop] * scale;
    }
  }

  static void keep(const V* tile, V* out, const i64* rows, i64 count, i64 columns, bool is_first) {
    for (i64 i = 0; i < count; ++i, tile += kProductColumns<V>) {
      V* to = out + rows[i];
      if (is_first)
        for (i64 j = 0; j < columns; ++j) to[j] = tile[j];
      else
        for (i64 j = 0; j < columns; ++j) to[j] += tile[j];
    }
  }

  V* arena_;
  StepView step_{};
  const Source<V>*a_ = nullptr, *b_ = nullptr;
  i64 domain_ = 0, rows_ = 0, columns_ = 0, batches_ = 0, block_rows_ = 0, block_columns_ = 0;
  std::vector<i64> row_axes_, batch_axes_, row_out_;
  Side<kProductRows> row_a_;
  Side<kProductColumns<V>> column_b_;
};

}  // namespace elimina::ELIMINA_ISA
