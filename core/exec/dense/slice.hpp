// Steps of a program with fixed values of some variables: only the cells with these values are computed.
//
// A step with a fixed variable, as an axis or as the eliminated variable, is rewritten without it. A message with fixed
// axes is written to the start of its place without gaps, as a row-major table over its other axes. The steps that read
// it have the same fixed variables, and are rewritten in the same way. Outputs of the program keep their layout.
#pragma once
#include <span>
#include <vector>

#include "elimina/config.hpp"
#include "elimina/program.hpp"
#include "exec/dense/step_record.hpp"

namespace elimina {

class Slices {
 public:
  Slices(const i64* words, const i64* starts, i64 steps, std::span<const i64> outputs);

  // Sets the addresses of the records; call it before `fix`.
  void set_records(const i64* words, const i64* starts) { words_ = words, starts_ = starts; }

  // Fixes variables. `values`: the value of each variable; -1: not fixed.
  void fix(const int* values, i64 variables);

  bool touches(i64 step) const { return !touched_.empty() && touched_[step] > 0; }

  // Returns the step without its fixed axes, valid until the next call.
  StepView slice(i64 number);

  // Steps that write an output with a fixed axis and have to run again after the last call of `fix`.
  const std::vector<i64>& sliced_outputs() const { return sliced_outputs_; }

 private:
  StepView view(i64 number) const { return {words_ + starts_[number]}; }
  i64 evidence(i64 variable) const { return variable < 0 ? -1 : values_[variable]; }
  bool has_given_axis(i64 number) const;
  bool is_packed(i64 number) const { return !is_output_[number] && has_given_axis(number); }
  // Sets the strides of a message without gaps.
  void pack_strides(StepView step);
  void index();
  void keep_axes(StepView whole);
  void rewrite_table(StepView whole, i64 number, i64 domain);

  const i64* words_;
  const i64* starts_;
  i64 steps_;
  std::vector<i64> outputs_, sliced_outputs_;
  std::vector<char> is_output_;
  std::vector<int> values_;
  std::vector<std::vector<i64>> steps_with_;  // steps with each variable
  std::vector<i64> touched_;                  // number of fixed variables of each step

  // State of the current step.
  std::vector<i64> axes_;
  std::vector<i64> packed_strides_;  // strides of the message along its variables without fixed values
  StepRecord record_;
  std::vector<i64> words_of_slice_;
};

}  // namespace elimina
