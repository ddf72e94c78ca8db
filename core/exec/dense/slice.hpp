// Steps of a program where the values of some variables are given: only the cells with these values are computed.
//
// A step that has a given variable, as an axis or as the eliminated one, is rewritten without it. A message with given axes is written
// to the start of its place without gaps, its other axes row by row; its readers have the same variables and are rewritten in the same way.
// Outputs of the program stay where they are.
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

  // Says where the records are, before the first call of `fix`.
  void set_records(const i64* words, const i64* starts) { words_ = words, starts_ = starts; }

  // A value for each variable, -1 where none is given.
  void fix(const int* values, i64 variables);

  bool touches(i64 step) const { return !touched_.empty() && touched_[step] > 0; }

  // The step without its observed axes; valid until the next call.
  StepView slice(i64 number);

  // The outputs that have a given axis, of the steps that the last call of `fix` made to run again.
  const std::vector<i64>& sliced_outputs() const { return sliced_outputs_; }

 private:
  StepView view(i64 number) const { return {words_ + starts_[number]}; }
  i64 given(i64 variable) const { return variable < 0 ? -1 : values_[variable]; }
  bool has_given_axis(i64 number) const;
  bool is_packed(i64 number) const { return !is_output_[number] && has_given_axis(number); }
  // Sets the strides of a message that is written without gaps.
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
  std::vector<std::vector<i64>> steps_with_;  // a variable
  std::vector<i64> touched_;                  // given variables of each step

  // State of the current step.
  std::vector<i64> axes_;
  std::vector<i64> packed_strides_;  // along each variable that the message has and that is not given
  StepRecord record_;
  std::vector<i64> words_of_slice_;
};

}  // namespace elimina
