#include "dense_slice.hpp"

#include <algorithm>

namespace elimina {

namespace {

constexpr i64 kShortestLo = 32;    // cells below which another axis joins the lo ones
constexpr i64 kLongestLo = 16384;  // as the planner's tiles
constexpr i64 kShortestMid = 16;

}  // namespace

Slices::Slices(const i64* words, const i64* starts, i64 steps, const i64* outputs, i64 output_count)
    : words_(words), starts_(starts), steps_(steps), outputs_(outputs, outputs + output_count), is_output_(steps) {
  for (const i64 number : outputs_) is_output_[number] = true;
}

void Slices::index() {
  touched_.assign(steps_, 0);
  steps_with_.resize(values_.size());
  for (i64 number = 0; number < steps_; ++number) {
    const StepView step = view(number);
    if (step[kVariable] >= 0) steps_with_[step[kVariable]].push_back(number);
    for (i64 axis = 0; axis < step[kAxes]; ++axis) steps_with_[step.variable(axis)].push_back(number);
  }
}

void Slices::fix(const int* values, i64 variables) {
  if (touched_.empty()) {
    values_.assign(variables, -1);
    index();
  }
  std::vector<char> changed(steps_);
  for (i64 v = 0; v < variables; ++v) {
    if (values[v] == values_[v]) continue;
    for (const i64 number : steps_with_[v]) {
      touched_[number] += (values[v] >= 0) - (values_[v] >= 0);
      changed[number] = true;
    }
    values_[v] = values[v];
  }
  sliced_outputs_.clear();
  for (const i64 number : outputs_)
    if (changed[number] && has_given_axis(number)) sliced_outputs_.push_back(number);
}

bool Slices::has_given_axis(i64 number) const {
  const StepView step = view(number);
  for (i64 axis = 0; axis < step[kAxes]; ++axis)
    if (given(step.variable(axis)) >= 0) return true;
  return false;
}

// Along a variable, in a message that is written without gaps; 0 if the message lacks it.
i64 Slices::packed_stride(StepView step, i64 variable) const {
  i64 stride = 1;
  for (i64 axis = step[kAxes] - 1; axis >= 0; --axis) {
    if (given(step.variable(axis)) >= 0) continue;
    if (step.variable(axis) == variable) return stride;
    stride *= step.size(axis);
  }
  return 0;
}

StepView Slices::slice(i64 number) {
  const StepView whole = view(number);
  domain_ = given(whole[kVariable]) >= 0 ? 1 : whole[kDomain];
  keep_axes(whole, is_packed(number));
  split(whole);
  tables_.clear();
  strides_.clear();
  for (i64 t = 0; t < whole[kTables]; ++t) rewrite_table(whole, t);
  write(whole);
  return {record_.data()};
}

void Slices::keep_axes(StepView whole, bool packed) {
  axes_.clear();
  out_ = whole[kOut];
  for (i64 axis = 0; axis < whole[kAxes]; ++axis) {
    const i64 value = given(whole.variable(axis));
    if (value >= 0)
      out_ += packed ? 0 : value * whole.out_stride(axis);
    else if (whole.size(axis) > 1)
      axes_.push_back({axis, whole.size(axis), whole.out_stride(axis)});
  }
  if (!packed) return;
  i64 stride = 1;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    axis->stride = stride;
    stride *= axis->size;
  }
}

// The plan's groups without what is given; short ones take axes of the group before.
void Slices::split(StepView whole) {
  const i64 count = i64(axes_.size());
  i64 cells = 1;
  for (lo_ = count; lo_ > 0; --lo_) {
    const Axis& next = axes_[lo_ - 1];
    if (next.stride != cells) break;
    if (cells >= kShortestLo && (next.number < whole.lo_axis() || cells * next.size > kLongestLo)) break;
    cells *= next.size;
  }
  cells = 1;
  for (mid_ = lo_; mid_ > 0; --mid_) {
    const Axis& next = axes_[mid_ - 1];
    if (cells >= kShortestMid && next.number < whole[kOuterAxes]) break;
    cells *= next.size;
  }
}

void Slices::rewrite_table(StepView whole, i64 number) {
  const TableView table = whole.table(number);
  Table& to = tables_.emplace_back(Table{table.offset(), 0, table.source(), false, false});
  const bool packed = table.source() >= 0 && is_packed(table.source());
  if (!packed) {
    for (i64 axis = 0; axis < whole[kAxes]; ++axis) to.offset += std::max<i64>(given(whole.variable(axis)), 0) * table.stride(axis);
    to.offset += std::max<i64>(given(whole[kVariable]), 0) * table.domain_stride();
  }
  if (domain_ > 1) to.domain_stride = packed ? packed_stride(view(table.source()), whole[kVariable]) : table.domain_stride();
  for (i64 a = 0; a < i64(axes_.size()); ++a) {
    const i64 axis = axes_[a].number;
    const i64 stride = packed ? packed_stride(view(table.source()), whole.variable(axis)) : table.stride(axis);
    strides_.push_back(stride);
    if (stride && a >= lo_)
      to.in_lo = true;
    else if (stride && a >= mid_)
      to.in_mid = true;
  }
}

void Slices::write(StepView whole) {
  const i64 count = i64(axes_.size());
  const auto cells = [&](i64 first, i64 last) {
    i64 product = 1;
    for (i64 a = first; a < last; ++a) product *= axes_[a].size;
    return product;
  };
  record_.assign({0, domain_, whole[kVariable], count, mid_, lo_ - mid_, cells(0, mid_), cells(mid_, lo_), cells(lo_, count), whole[kTables], 0, 0, out_, whole[kWeight]});
  for (const Axis& axis : axes_) record_.insert(record_.end(), {axis.size, axis.stride, whole.variable(axis.number)});
  const auto group = [&](const Table& table) { return !table.in_lo ? 0 : lo_ > mid_ && !table.in_mid ? 1 : 2; };
  for (const int wanted : {0, 1, 2})
    for (i64 t = 0; t < i64(tables_.size()); ++t) {
      const Table& table = tables_[t];
      if (group(table) != wanted) continue;
      record_.insert(record_.end(), {table.offset, table.domain_stride, table.source});
      record_.insert(record_.end(), strides_.begin() + t * count, strides_.begin() + (t + 1) * count);
      if (wanted < 2) ++record_[wanted ? kTablesB : kTablesA];
    }
  record_[kWords] = i64(record_.size());
}

}  // namespace elimina
