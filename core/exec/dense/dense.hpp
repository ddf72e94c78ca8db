// Runs packed programs (elimina/program.hpp) on the CPU.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "elimina/config.hpp"
#include "elimina/program.hpp"
#include "exec/dense/slice.hpp"
#include "exec/records.hpp"
#include "exec/semirings.hpp"

namespace elimina {

// Number of combinations of the smallest step that threads share.
inline constexpr double shared_work = 1e6;

struct DenseRun {
  SemiringKind semiring;
  ValueKind value;
  double parameter;       // parameter of a semiring of floats, such as min-sum's forbidden value
  i64 integer_parameter;  // the same for a semiring of integers
  const i64* words;
  const i64* starts;
  i64 steps;
  void* arena;
  double* peaks;  // output range of each step: [steps][2]
  int threads;
  RecordWriter* writer = nullptr;  // writes the records in place of `words` and `starts`
};

// Called regularly on the calling thread, with the work done so far; returns false to stop.
using DensePoll = std::function<bool(double)>;

class StepKernels;
struct Peak;

// A program translated for its arena, to be run any number of times.
class DenseExecutor {
 public:
  // `outputs`: steps that write the answer.
  DenseExecutor(const DenseRun& run, std::span<const i64> outputs);
  ~DenseExecutor();
  // Restricts steps to the cells with given values of variables (see exec/dense/slice.hpp). `values`: value of each
  // variable; -1: not restricted. All other cells of the outputs become the semiring's zero. If the value of a variable
  // changes, every step with this variable has to run again. All steps that depend on its output have to run again,
  // too.
  void fix(const int* values, i64 variables);
  // Runs the `count` steps whose numbers `sequence` lists in ascending order; nullptr: the first `count` steps. Returns
  // false if `poll` stopped it.
  bool run(const i64* sequence, i64 count, const DensePoll& poll);
  // Decodes the variables that step `first` and later steps eliminate: writes their best values to `assignment`. Reads
  // the tables of these steps and the output ranges.
  void decode(int* assignment, i64 first);
  // Runs the first `count` steps of another program over the same arena, and writes their output ranges to `peaks`.
  bool run_other(const i64* words, const i64* starts, i64 count, double* peaks, const DensePoll& poll);

 private:
  struct Entry {
    float work;
    i32 small;  // number of the step among the translated ones, or one of the constants below
  };
  static constexpr i32 kOrdinary = -1, kMatched = -2;
  // Steps are translated in their second run: one run alone takes less time without translation.
  static constexpr i32 kUnseen = -3, kSeen = -4;
  static constexpr i32 kNew = -5;  // not yet visited

  // Returns a step's record, valid until the next call.
  StepView view(i64 number) { return words_ ? StepView{words_ + starts_[number]} : written(number); }
  StepView written(i64 number);
  void write_all();
  Entry look_at(StepView step);
  bool one_step(i64 number, double finished_work, Peak& peak, const DensePoll& poll);
  bool given_step(StepView step, double finished_work, Peak& peak, const DensePoll& poll);
  bool large_step(StepView step, double work, double finished_work, Peak& peak, const DensePoll& poll);
  bool matching_step(StepView step, double work, double finished_work, const DensePoll& poll);

  const DenseRun run_;
  const int threads_;
  const i64* words_;  // nullptr if records are written one by one
  const i64* starts_;
  i64 last_ = -1;  // step of the record that was written last
  // `record_`: the record that was written last, or all records. `own_starts_`: starts of the records, if all are
  // stored.
  std::vector<i64> record_, own_starts_;
  double* peaks_ = nullptr;  // output ranges of the current program
  std::unique_ptr<StepKernels> kernels_;
  Slices slices_;
  std::vector<Entry> entries_;
};

const char* dense_instruction_set();
// All instruction sets of the processor, the best one first.
std::vector<std::string> dense_instruction_sets();
// Selects an instruction set for executors made from now on. Returns false if the processor has no such set.
bool use_dense_instruction_set(const std::string& name);

}  // namespace elimina
