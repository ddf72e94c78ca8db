#include "exec/dense/slice.hpp"

#include <algorithm>

namespace elimina {

Slices::Slices(const i64* words, const i64* starts, i64 steps, std::span<const i64> outputs)
    : words_(words), starts_(starts), steps_(steps), outputs_(outputs.begin(), outputs.end()), is_output_(steps) {
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
    packed_strides_.resize(variables);
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

bool Slices::has_given_axis(i64 number) const { return touched_[number] > (evidence(view(number)[kVariable]) >= 0); }

void Slices::pack_strides(StepView step) {
  i64 stride = 1;
  for (i64 axis = step[kAxes] - 1; axis >= 0; --axis) {
    if (evidence(step.variable(axis)) >= 0) continue;
    packed_strides_[step.variable(axis)] = stride;
    stride *= step.size(axis);
  }
}

StepView Slices::slice(i64 number) {
  const StepView whole = view(number);
  const bool packed = is_packed(number);
  const i64 domain = evidence(whole[kVariable]) >= 0 ? 1 : whole[kDomain];
  keep_axes(whole);
  i64 out = whole[kOut];
  if (!packed)
    for (i64 axis = 0; axis < whole[kAxes]; ++axis)
      out += std::max<i64>(evidence(whole.variable(axis)), 0) * whole.out_stride(axis);
  record_.start(whole[kVariable], domain, out, whole[kWeight]);
  if (packed) pack_strides(whole);
  for (const i64 axis : axes_) {
    const i64 variable = whole.variable(axis);
    record_.add_axis(whole.size(axis), packed ? packed_strides_[variable] : whole.out_stride(axis), variable);
  }
  const auto kept = [&](i64 before) { return std::lower_bound(axes_.begin(), axes_.end(), before) - axes_.begin(); };
  record_.split(kept(whole[kOuterAxes]), kept(whole.lo_axis()));
  for (i64 t = 0; t < whole[kTables]; ++t) rewrite_table(whole, t, domain);
  words_of_slice_.clear();
  record_.append_to(words_of_slice_);
  return {words_of_slice_.data()};
}

void Slices::keep_axes(StepView whole) {
  axes_.clear();
  for (i64 axis = 0; axis < whole[kAxes]; ++axis)
    if (evidence(whole.variable(axis)) < 0 && whole.size(axis) > 1) axes_.push_back(axis);
}

void Slices::rewrite_table(StepView whole, i64 number, i64 domain) {
  const TableView table = whole.table(number);
  const bool packed = table.source() >= 0 && is_packed(table.source());
  i64 offset = table.offset(), domain_stride = 0;
  if (!packed) {
    for (i64 axis = 0; axis < whole[kAxes]; ++axis)
      offset += std::max<i64>(evidence(whole.variable(axis)), 0) * table.stride(axis);
    offset += std::max<i64>(evidence(whole[kVariable]), 0) * table.domain_stride();
  }
  if (packed) pack_strides(view(table.source()));
  // A stride of 0 stays 0: the table lacks the variable.
  const auto along = [&](i64 stride, i64 variable) { return packed && stride ? packed_strides_[variable] : stride; };
  if (domain > 1) domain_stride = along(table.domain_stride(), whole[kVariable]);
  i64* strides = record_.add_table(offset, domain_stride, table.source());
  for (const i64 axis : axes_) *strides++ = along(table.stride(axis), whole.variable(axis));
}

}  // namespace elimina
