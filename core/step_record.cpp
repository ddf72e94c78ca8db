#include "step_record.hpp"

#include <algorithm>

namespace elimina {

namespace {

constexpr i64 kShortestLo = 32;    // cells below which another axis joins the fast ones
constexpr i64 kLongestLo = 16384;  // as the planner's tiles
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

// 0: lhs; 1: rhs; 2: streamed.
int StepRecord::group(i64 table) const {
  const auto begin = strides_.begin() + table * axes();
  const auto has = [&](i64 first, i64 last) { return std::any_of(begin + first, begin + last, [](i64 stride) { return stride != 0; }); };
  return !has(lo_, axes()) ? 0 : lo_ > mid_ && !has(mid_, lo_) ? 1 : 2;
}

const std::vector<i64>& StepRecord::append_to(std::vector<i64>& words) {
  const i64 start = i64(words.size()), count = axes(), tables = i64(tables_.size());
  words.insert(words.end(), {0, domain_, variable_, count, mid_, lo_ - mid_, cells(0, mid_), cells(mid_, lo_), cells(lo_, count), tables, 0, 0, out_, weight_});
  for (const Axis& axis : axes_) words.insert(words.end(), {axis.size, axis.stride, axis.variable});
  places_.resize(tables_.size());
  groups_.resize(tables_.size());
  i64 found[3] = {};
  for (i64 t = 0; t < tables; ++t) ++found[groups_[t] = group(t)];
  for (const int wanted : {0, 1, 2})
    for (i64 t = 0; t < tables; ++t) {
      if (groups_[t] != wanted) continue;
      places_[t] = i64(words.size());
      words.insert(words.end(), {tables_[t].offset, tables_[t].domain_stride, tables_[t].source});
      words.insert(words.end(), strides_.begin() + t * count, strides_.begin() + (t + 1) * count);
    }
  words[start + kTablesA] = found[0];
  words[start + kTablesB] = found[1];
  streamed_ = found[2];
  words[start + kWords] = i64(words.size()) - start;
  return places_;
}

}  // namespace elimina
