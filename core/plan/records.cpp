#include "plan/records.hpp"

#include <cstring>

#include "elimina/program.hpp"
#include "plan/arena.hpp"

namespace elimina::plan {

i64 Recorder::words(i64 step) const {
  const i64 axes = i64(steps_.axes_of(step).size()), tables = i64(steps_.reads_of(step).size());
  return kHeader + kAxisWords * axes + tables * (kStrides + axes) + kOtherWords * i64(steps_.others_of(step).size());
}

i64 Recorder::measure(int scope, int rows) {
  const auto variables = steps_.scopes[scope];
  shape_.resize(variables.size());
  strides_.resize(variables.size());
  for (std::size_t axis = 0; axis < variables.size(); ++axis) shape_[axis] = sizes_[variables[axis]];
  return lay_out_table(shape_, itemsize_, rows, strides_);
}

void Recorder::find(const Read& read) {
  int scope = read.scope;
  read_strides_ = layout_.strides.data();
  if (read.source < 0) {
    read_strides_ += steps_.scopes.starts[scope];
  } else {
    scope = steps_.steps[read.source].scope;
    measure(read.source);
    read_strides_ = strides_.data();
  }
  read_scope_ = steps_.scopes[scope];
  if (read_scope_.size() <= kFew) return;
  stride_.resize(sizes_.size());
  marks_.resize(sizes_.size());
  marks_.clear();
  for (std::size_t axis = 0; axis < read_scope_.size(); ++axis)
    marks_.add(read_scope_[axis]), stride_[read_scope_[axis]] = read_strides_[axis];
}

i64 Recorder::along(int v) const {
  if (read_scope_.size() > kFew) return v >= 0 && marks_.has(v) ? stride_[v] : 0;
  for (std::size_t axis = 0; axis < read_scope_.size(); ++axis)
    if (read_scope_[axis] == v) return read_strides_[axis];
  return 0;
}

void Recorder::write(i64 number, i64* to) {
  const Step& step = steps_.steps[number];
  const auto scope = steps_.scopes[step.scope];
  const auto axes = steps_.axes_of(number);
  const auto reads = steps_.reads_of(number);
  const auto others = steps_.others_of(number);
  measure(number);
  i64 cells[3] = {1, 1, 1};
  i64* word = to + kHeader;
  for (int a = 0; a < int(axes.size()); ++a) {
    const int v = scope[axes[a]];
    *word++ = sizes_[v];
    *word++ = strides_[axes[a]];
    *word++ = v;
    i64& group = cells[a < step.outer ? 0 : a < step.outer + step.mid ? 1 : 2];
    group = times(group, sizes_[v]);
  }
  for (const Read& read : reads) {
    find(read);
    *word++ = read.source < 0 ? layout_.offsets[read.scope] : layout_.out_offsets[read.source];
    *word++ = along(others.empty() ? step.variable : others.back());
    *word++ = read.source;
    for (const int axis : axes) *word++ = along(scope[axis]);
  }
  for (const int v : others) *word++ = v, *word++ = sizes_[v];
  i64 weight;
  std::memcpy(&weight, &step.weight, sizeof weight);
  const i64 header[kHeader] = {word - to,
                               step.domain,
                               step.variable,
                               i64(axes.size()),
                               step.outer,
                               step.mid,
                               cells[0],
                               cells[1],
                               cells[2],
                               i64(reads.size()),
                               step.tables_a,
                               step.tables_b,
                               layout_.out_offsets[number],
                               weight};
  std::copy(header, header + kHeader, to);
}

std::vector<i64> LaidOutSteps::all_starts() const {
  std::vector<i64> starts;
  starts.reserve(steps->steps.size());
  const Recorder recorder(*this);
  i64 words = 0;
  for (i64 step = 0; step < i64(steps->steps.size()); ++step) {
    starts.push_back(words);
    words += recorder.words(step);
  }
  return starts;
}

std::vector<i64> LaidOutSteps::all_words() const {
  std::vector<i64> words(static_cast<std::size_t>(record_words));
  Recorder recorder(*this);
  i64* to = words.data();
  for (i64 step = 0; step < i64(steps->steps.size()); ++step) {
    recorder.write(step, to);
    to += recorder.words(step);
  }
  return words;
}

std::vector<int> LaidOutSteps::all_factors() const {
  std::vector<int> factors;
  factors.reserve(steps->reads.size());
  for (const Read& read : steps->reads) factors.push_back(read.factor());
  return factors;
}

}  // namespace elimina::plan
