// The join of two sorted tables, fused with the elimination of the least significant variable.
//
// Both tables' keys are in the output's layout: shared variables first, then variables of the left table only,
// variables of the right table only, and last the least significant variable, the low field. Rows with equal shared
// variables are a group. Rows of one table that differ only in the low field are a run. Each pair of a left and a right
// run of a group makes one output row. Without elimination, each pair makes a row for each value of the low field that
// both runs have.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <vector>

#include "exec/paths.hpp"
#include "exec/share.hpp"
#include "exec/sparse/grid.hpp"
#include "stop.hpp"

namespace elimina::sparse {

// Returns the first row of [row, end) that is not before `key`. The search takes few steps if that row is near `row`.
template <int W>
i64 reach(const Key<W>* keys, i64 row, i64 end, const Key<W>& key, const Key<W>& mask) {
  i64 step = 1;
  while (row + step < end && less(keys[row + step], key, mask)) {
    row += step;
    step *= 2;
  }
  i64 last = std::min(row + step, end);
  while (row < last) {
    const i64 middle = row + (last - row) / 2;
    if (less(keys[middle], key, mask)) row = middle + 1;
    else last = middle;
  }
  return row;
}

template <int W>
i64 run_end(const Key<W>* keys, i64 begin, i64 end, const Key<W>& mask) {
  i64 i = begin + 1;
  while (i < end && agree(keys[i], keys[begin], mask)) ++i;
  return i;
}

struct Range {
  i64 begin, end;
  i64 rows() const { return end - begin; }
};

// Sets `starts` to the starts of the runs, followed by the end of the last run.
template <int W>
void find_starts(const Key<W>* keys, Range rows, const Key<W>& mask, std::vector<i64>& starts) {
  starts.resize(std::size_t(rows.rows()) + 1);
  i64* start = starts.data();
  *start++ = rows.begin;
  for (i64 i = rows.begin + 1; i < rows.end; ++i) {
    *start = i;
    start += !agree(keys[i], keys[i - 1], mask);
  }
  *start++ = rows.end;
  starts.resize(std::size_t(start - starts.data()));
}

// Calls visit(left range, right range) for each group that both sides have.
template <int W, class Take>
void each_group(const Key<W>* left, Range l, const Key<W>* right, Range r, const Key<W>& group, Take&& visit) {
  while (l.begin < l.end && r.begin < r.end) {
    if (less(left[l.begin], right[r.begin], group)) {
      l.begin = reach(left, l.begin, l.end, right[r.begin], group);
    } else if (less(right[r.begin], left[l.begin], group)) {
      r.begin = reach(right, r.begin, r.end, left[l.begin], group);
    } else {
      const i64 l_end = run_end(left, l.begin, l.end, group), r_end = run_end(right, r.begin, r.end, group);
      visit(Range{l.begin, l_end}, Range{r.begin, r_end});
      l.begin = l_end;
      r.begin = r_end;
    }
  }
}

// Splits sorted rows into about equal parts, never within a group.
template <int W>
std::vector<i64> group_cuts(const Key<W>* keys, i64 rows, i64 pieces, const Key<W>& group) {
  std::vector<i64> cuts{0};
  for (i64 piece = 1; piece < pieces; ++piece) {
    i64 cut = std::max(cuts.back(), rows * piece / pieces);
    while (cut > 0 && cut < rows && agree(keys[cut], keys[cut - 1], group)) ++cut;
    cuts.push_back(cut);
  }
  cuts.push_back(rows);
  return cuts;
}

// Part of both tables: some groups, or a piece of one group. `bound`: largest number of output rows.
struct Block {
  Range left, right;
  i64 bound;
};

// Two tables' keys, cut into blocks.
template <int W>
class JoinBlocks {
 public:
  JoinBlocks(const Table& left, const Table& right, const JoinOrder& order, int threads)
      : order_(order), runs_(all_but<W>(order.low)), threads_(threads), left_rows_(left.rows), right_rows_(right.rows) {
    left_ = reinterpret_cast<const Key<W>*>(left.keys), right_ = reinterpret_cast<const Key<W>*>(right.keys);
    std::copy_n(order.group, W, group_.word);
  }

  std::vector<Block> cut() const {
    const i64 pieces = std::clamp<i64>(left_rows_ / kBlock, 1, threads_);
    const std::vector<i64> cuts = group_cuts(left_, left_rows_, pieces, group_);
    std::vector<std::vector<Block>> blocks_of_pieces(std::size_t(pieces), std::vector<Block>{});
    share(threads_, 0, pieces, [&](i64 piece, int) {
      cut_part({cuts[std::size_t(piece)], cuts[std::size_t(piece) + 1]}, blocks_of_pieces[std::size_t(piece)]);
    });
    std::vector<Block> blocks;
    for (const std::vector<Block>& blocks_of_piece : blocks_of_pieces)
      blocks.insert(blocks.end(), blocks_of_piece.begin(), blocks_of_piece.end());
    return blocks;
  }

 private:
  static constexpr i64 kBlock = i64(1) << 15;

  void cut_part(Range left_range, std::vector<Block>& blocks) const {
    if (left_range.rows() == 0) return;
    Block open{};
    const auto close = [&] {
      patience_.check();
      if (open.bound > 0) blocks.push_back(open);
      open.bound = 0;
    };
    const i64 first = reach(right_, 0, right_rows_, left_[left_range.begin], group_);
    each_group(left_, left_range, right_, Range{first, right_rows_}, group_, [&](Range l, Range r) {
      const i64 bound = most_rows(l, r);
      if (bound > kBlock) {
        close();
        count_path(Path::join_split_group);
        split(l, r, blocks);
        return;
      }
      if (open.bound == 0) open = {l, r, 0};
      open = {{open.left.begin, l.end}, {open.right.begin, r.end}, open.bound + bound};
      if (open.bound >= kBlock) close();
    });
    close();
  }

  i64 count_runs(const Key<W>* keys, Range rows) const {
    if (!order_.low) return rows.rows();
    i64 runs = 1;
    for (i64 i = rows.begin + 1; i < rows.end; ++i) runs += !agree(keys[i], keys[i - 1], runs_);
    return runs;
  }

  i64 most_rows(Range l, Range r) const {
    const i64 left_runs = count_runs(left_, l), right = count_runs(right_, r);
    return order_.eliminate ? left_runs * right : std::min(left_runs * r.rows(), right * l.rows());
  }

  // Cuts a large group into blocks of some left runs and the whole right side, or of one left run and some right runs.
  void split(Range l, Range r, std::vector<Block>& blocks) const {
    const i64 left_piece = std::max<i64>(1, kBlock / r.rows());
    for (i64 i = l.begin; i < l.end;) {
      const i64 i_end = run_end(left_, std::min(i + left_piece, l.end) - 1, l.end, runs_);
      for (i64 j = r.begin; j < r.end;) {
        patience_.check();
        const i64 j_end = r.rows() <= kBlock ? r.end : run_end(right_, std::min(j + kBlock, r.end) - 1, r.end, runs_);
        blocks.push_back({{i, i_end}, {j, j_end}, most_rows({i, i_end}, {j, j_end})});
        j = j_end;
      }
      i = i_end;
    }
  }

  const Patience patience_ = patience;
  const Key<W>*left_, *right_;
  JoinOrder order_;
  Key<W> group_, runs_;
  int threads_;
  i64 left_rows_, right_rows_;
};

template <class R, int W>
class Join {
 public:
  using Value = typename R::Value;

  Join(const Stage<R, W>& stage, const Table& left, const Table& right, const JoinOrder& order)
      : stage_(stage), order_(order), runs_(all_but<W>(order.low)) {
    left_ = {reinterpret_cast<const Key<W>*>(left.keys), static_cast<const Value*>(left.values)};
    right_ = {reinterpret_cast<const Key<W>*>(right.keys), static_cast<const Value*>(right.values)};
    std::copy_n(order.group, W, group_.word);
    for (int w = 0; w < W; ++w) outside_group_.word[w] = ~group_.word[w];
  }

  OwnedTable run(const std::vector<Block>& blocks, int threads) const {
    if (stage_.words[0] > 0) count_path(Path::join_with_lookup);
    if (stage_.words[1] >= 0) count_path(Path::join_with_bounds);
    if (W > 1) count_path(Path::rows_long_keys);
    i64 bound = 0;
    for (const Block& block : blocks) {
      bound += block.bound;
      if (bound > kMostPairs) throw std::overflow_error("the join has too many candidate rows");
    }
    return write_blocks<W, Value>(
        i64(blocks.size()), threads, [&](i64 n) { return blocks[std::size_t(n)].bound; },
        [&](i64 n, Writer<W, Value>& writer) { fill(blocks[std::size_t(n)], writer); }, bound, order_.max_rows,
        order_.goes_on);
  }

 private:
  // Largest number of rows of the right side of a product: their offsets stay in the cache.
  static constexpr i64 kMostCells = 1 << 12;

  void fill(const Block& block, Writer<W, Value>& writer) const {
    std::vector<i64> left_starts, right_starts;
    Grid<R, W> grid(stage_.ring, order_.low);
    std::vector<i64> cells;
    bool any_plain = false, any_product = false, any_pairs = false, any_grid = false, any_runs = false;
    each_group(left_.keys, block.left, right_.keys, block.right, group_, [&](Range l, Range r) {
      if (!order_.low) {
        writer.candidates += l.rows() * r.rows();
        if (unfiltered()) {
          any_plain = true;
          plain(l, r, writer);
        } else if (l.rows() > 1 && r.rows() > 1 && r.rows() <= kMostCells) {
          any_product = true;
          product(l, r, cells, writer);
        } else {
          any_pairs = true;
          for (i64 i = l.begin; i < l.end; ++i)
            for (i64 j = r.begin; j < r.end; ++j) pair({i, i + 1}, {j, j + 1}, writer);
        }
        return;
      }
      find_starts(left_.keys, l, runs_, left_starts);
      find_starts(right_.keys, r, runs_, right_starts);
      writer.candidates += i64(left_starts.size() - 1) * i64(right_starts.size() - 1);
      if (unfiltered() && grid.worth(l.rows() + r.rows(), left_starts.size() + right_starts.size())) {
        any_grid = true;
        if (order_.eliminate) grid.eliminate(left_, left_starts, right_, right_starts, writer);
        else grid.keep(left_, left_starts, right_, right_starts, writer);
        return;
      }
      any_runs = true;
      for (std::size_t m = 0; m + 1 < left_starts.size(); ++m)
        for (std::size_t n = 0; n + 1 < right_starts.size(); ++n)
          pair({left_starts[m], left_starts[m + 1]}, {right_starts[n], right_starts[n + 1]}, writer);
    });
    if (any_plain) count_path(Path::join_plain);
    if (any_product) count_path(Path::join_product);
    if (any_pairs) count_path(Path::join_pairs);
    if (any_grid) count_path(order_.eliminate ? Path::join_grid_eliminating : Path::join_grid);
    if (any_runs) count_path(order_.eliminate ? Path::join_eliminating : Path::join_runs);
  }

  bool unfiltered() const { return stage_.words[0] == 0 && stage_.words[1] < 0; }

  void plain(Range l, Range r, Writer<W, Value>& writer) const {
    Key<W>* keys = writer.keys;
    Value* values = writer.values;
    i64 rows = writer.rows;
    for (i64 i = l.begin; i < l.end; ++i) {
      const Key<W> left_key = left_.keys[i];
      const Value left_value = left_.values[i];
      for (i64 j = r.begin; j < r.end; ++j) {
        const Value value = stage_.ring.combine(left_value, right_.values[j]);
        keys[rows] = left_key | right_.keys[j];
        values[rows] = value;
        rows += feasible(stage_.ring, value);
      }
    }
    writer.rows = rows;
  }

  // Joins all pairs of two ranges of rows. The address of a dense table's cell is the sum of two offsets, one for each
  // row's key.
  void product(Range l, Range r, std::vector<i64>& cells, Writer<W, Value>& writer) const {
    const std::size_t tables = std::size_t(stage_.tables());
    cells.resize(std::size_t(r.rows() + 1) * tables);
    i64* const of_left = cells.data();
    for (i64 j = r.begin; j < r.end; ++j)
      stage_.find_cells(right_.keys[j] & outside_group_, 0, of_left + std::size_t(j - r.begin + 1) * tables);
    for (i64 i = l.begin; i < l.end; ++i) {
      stage_.find_cells(left_.keys[i], 1, of_left);
      const i64* of_right = of_left;
      for (i64 j = r.begin; j < r.end; ++j) {
        of_right += tables;
        Value value = stage_.ring.combine(left_.values[i], right_.values[j]);
        if (stage_.admits(of_left, of_right, value)) writer.put(left_.keys[i] | right_.keys[j], value);
      }
    }
  }

  void pair(Range l, Range r, Writer<W, Value>& writer) const {
    Marginal<R> marginal(stage_.ring);
    meet(stage_, order_.low, left_, l.begin, l.end, right_, r.begin, r.end, [&](const Key<W>& key, Value value) {
      if (order_.eliminate) marginal.add(stage_.ring, value);
      else writer.put(key, value);
    });
    if (!marginal.any) return;
    Key<W> key = left_.keys[l.begin] | right_.keys[r.begin];
    key.word[W - 1] &= ~order_.low;
    writer.put(key, stage_.ring.finish(marginal.sum));
  }

  Stage<R, W> stage_;
  JoinOrder order_;
  Key<W> group_, outside_group_, runs_;
  Side<R, W> left_, right_;
};

// Keeps the rows of `left` whose shared variables occur in `right`.
template <int W, class V>
OwnedTable semi_join_rows(const Table& left, const Table& right, const u64* group_words, int threads) {
  constexpr i64 block_rows = i64(1) << 15;
  Key<W> group;
  std::copy_n(group_words, W, group.word);
  const auto* keys = reinterpret_cast<const Key<W>*>(left.keys);
  const auto* others = reinterpret_cast<const Key<W>*>(right.keys);
  const auto* values = static_cast<const V*>(left.values);
  const i64 blocks = (left.rows + block_rows - 1) / block_rows;
  count_path(Path::rows_semi_join);
  const auto keep = [&](i64 block, Writer<W, V>& writer) {
    const i64 end = std::min(left.rows, (block + 1) * block_rows);
    i64 other_row = reach(others, 0, right.rows, keys[block * block_rows], group);
    for (i64 i = block * block_rows; i < end; ++i) {
      if (other_row < right.rows && less(others[other_row], keys[i], group))
        other_row = reach(others, other_row, right.rows, keys[i], group);
      if (other_row < right.rows && agree(others[other_row], keys[i], group)) writer.put(keys[i], values[i]);
    }
    writer.candidates = end - block * block_rows;
  };
  return write_blocks<W, V>(blocks, threads, [](i64) { return block_rows; }, keep, left.rows);
}

}  // namespace elimina::sparse
