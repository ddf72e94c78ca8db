#include "exec/dense/step_record.hpp"

#include <algorithm>

namespace elimina {

namespace {

constexpr i64 kShortestLo = 32;    // with fewer fast cells, another axis becomes fast
constexpr i64 kLongestLo = 16384;  // largest number of fast cells, as in the planner's tiles
constexpr i64 kShortestMid = 16;

}  // namespace

void StepRecord::start(i64 variable, i64 domain, i64 out, i64 weight) {
  variable_ = variable, domain_ = domain, out_ = out, weight_ = weight;
  axes_.clear();
  tables_.clear();
  strides_.clear();
}

void StepRecord::split(i64 mid, i64 lo) {
  i64 cells = 1;
  for (lo_ = axes(); lo_ > 0; --lo_) {
    const Axis& next = axes_[lo_ - 1];
    if (next.stride != cells) break;
    if (cells >= kShortestLo && (lo_ <= lo || cells * next.size > kLongestLo)) break;
    cells *= next.size;
  }
  cells = 1;
  for (mid_ = lo_; mid_ > 0; --mid_) {
    if (cells >= kShortestMid && mid_ <= mid) break;
    cells *= axes_[mid_ - 1].size;
  }
}

i64* StepRecord::add_table(i64 offset, i64 domain_stride, i64 source) {
  tables_.push_back({offset, domain_stride, source});
  strides_.resize(strides_.size() + axes_.size());
  return strides_.data() + strides_.size() - axes_.size();
}

i64 StepRecord::cells(i64 first, i64 last) const {
  i64 product = 1;
  for (i64 a = first; a < last; ++a) product *= axes_[a].size;
  return product;
}

// Returns the kind of a table: 0 lhs, 1 rhs, 2 streamed.
int StepRecord::group(i64 table) const {
  const auto begin = strides_.begin() + table * axes();
  const auto has = [&](i64 first, i64 last) {
    return std::any_of(begin + first, begin + last, [](i64 stride) { return stride != 0; });
  };
  return !has(lo_, axes()) ? 0 : lo_ > mid_ && !has(mid_, lo_) ? 1 : 2;
}

const std::vector<i64>& StepRecord::append_to(std::vector<i64>& words) {
  const i64 count = axes(), tables = i64(tables_.size()), table_words = kStrides + count;
  const i64 start = i64(words.size()), first = start + kHeader + kAxisWords * count,
            length = first - start + tables * table_words;
  table_offsets_.resize(tables_.size());
  groups_.resize(tables_.size());
  i64 group_sizes[3] = {};
  for (i64 t = 0; t < tables; ++t) ++group_sizes[groups_[t] = group(t)];
  words.resize(std::size_t(start + length));
  const i64 header[kHeader] = {
      length,           domain_,           variable_, count,          mid_,           lo_ - mid_, cells(0, mid_),
      cells(mid_, lo_), cells(lo_, count), tables,    group_sizes[0], group_sizes[1], out_,       weight_};
  i64* to = std::copy(header, header + kHeader, words.begin() + start).base();
  for (const Axis& axis : axes_) *to++ = axis.size, *to++ = axis.stride, *to++ = axis.variable;
  i64 next[3] = {first, first + group_sizes[0] * table_words, first + (group_sizes[0] + group_sizes[1]) * table_words};
  for (i64 t = 0; t < tables; ++t) {
    table_offsets_[t] = next[groups_[t]];
    next[groups_[t]] += table_words;
    to = words.data() + table_offsets_[t];
    *to++ = tables_[t].offset, *to++ = tables_[t].domain_stride, *to++ = tables_[t].source;
    std::copy_n(strides_.begin() + t * count, count, to);
  }
  streamed_ = group_sizes[2];
  return table_offsets_;
}

}  // namespace elimina
