// Running packed programs (elimina/program.hpp) on the CPU.
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

// Combinations of a step from which threads share it.
inline constexpr double shared_work = 1e6;

struct DenseRun {
  SemiringKind semiring;
  ValueKind value;
  double parameter;  // of semirings of floats: min-sum's forbidden value; see `integer_parameter`
  i64 integer_parameter;
  const i64* words;
  const i64* starts;
  i64 steps;
  void* arena;
  double* peaks;  // [steps][2]
  int threads;
  RecordWriter* writer = nullptr;  // in place of `words` and `starts`
};

// Called on the calling thread now and then with the work done so far; false: stop.
using DensePoll = std::function<bool(double)>;

class StepKernels;
struct Peak;

// A program that was translated for its arena, to be run any number of times.
class DenseExecutor {
 public:
  // `outputs`: the steps that write the answer.
  DenseExecutor(const DenseRun& run, std::span<const i64> outputs);
  ~DenseExecutor();
  // Restricts steps: they compute only the cells with these values (-1: none is given), see dense_slice.hpp; other cells of the
  // outputs become the semiring's zero. Every step with a variable whose value changed has to run again, and all that depend on it.
  void fix(const int* values, i64 variables);
  // Runs the steps of these numbers, ascending (nullptr: the first steps). Returns false if `poll` stopped it.
  bool run(const i64* sequence, i64 count, const DensePoll& poll);
  // Writes the best value of each variable that a step eliminates, from the messages and output ranges of all steps.
  void decode(int* assignment);
  // Runs the steps of another program over the same arena, which `run` knows nothing of; writes their output ranges.
  bool run_other(const i64* words, const i64* starts, i64 count, double* peaks, const DensePoll& poll);

 private:
  struct Entry {
    float work;
    i32 small;  // its number there, or:
  };
  static constexpr i32 kOrdinary = -1, kLevelled = -2;
  static constexpr i32 kUnseen = -3,
                       kSeen = -4;  // translated when they run for the second time: once costs less as they are
  static constexpr i32 kNew = -5;   // not looked at

  // Valid until the next call.
  StepView view(i64 number) { return words_ ? StepView{words_ + starts_[number]} : written(number); }
  StepView written(i64 number);
  void write_all();
  Entry look_at(StepView step);
  bool one_step(i64 number, double done, Peak& peak, const DensePoll& poll);
  bool given_step(StepView step, double done, Peak& peak, const DensePoll& poll);
  bool large_step(StepView step, double work, double done, Peak& peak, const DensePoll& poll);
  bool level_step(StepView step, double work, double done, const DensePoll& poll);

  const DenseRun run_;
  const int threads_;
  const i64* words_;  // nullptr while records are written one by one
  const i64* starts_;
  i64 last_ = -1;                      // the step whose record was written last
  std::vector<i64> own_, own_starts_;  // that record, or all
  double* peaks_ = nullptr;            // of the program that runs
  std::unique_ptr<StepKernels> kernels_;
  Slices slices_;
  std::vector<Entry> entries_;
};

const char* dense_instruction_set();
// All that the processor has, the best one first.
std::vector<std::string> dense_instruction_sets();
// Selects an instruction set for executors that are made from now on. False: the processor has none of this name.
bool use_dense_instruction_set(const std::string& name);

}  // namespace elimina
