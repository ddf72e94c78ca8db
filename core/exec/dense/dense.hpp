// Running packed programs (elimina/program.hpp) on the CPU.
#pragma once
#include <functional>
#include <memory>

#include "elimina/config.hpp"

namespace elimina {

enum class SemiringKind { min_sum, max_sum, max_product, sum_product, log_sum_exp, count };
enum class ValueKind { int16, int32, int64, float32, float64, uint64 };

struct DenseRun {
  SemiringKind semiring;
  ValueKind value;
  double parameter;  // min-sum, max-sum: the forbidden value of floats; see `integer_parameter`
  i64 integer_parameter;
  const i64* words;
  const i64* starts;
  i64 steps;
  const i64* outputs;  // the steps that write the answer
  i64 output_count;
  void* arena;
  double* peaks;  // [steps][2]
  int threads;
};

// Called on the calling thread now and then with the work done so far; false: stop.
using DensePoll = std::function<bool(double)>;

// A program that was translated for its arena, to be run any number of times.
class DenseExecutor {
 public:
  virtual ~DenseExecutor() = default;
  // Restricts steps: they compute only the cells with these values (-1: none is given), see dense_slice.hpp; other cells of the
  // outputs become the semiring's zero. Every step with a variable whose value changed has to run again, and all that depend on it.
  virtual void fix(const int* values, i64 variables) = 0;
  // Runs the steps of these numbers, ascending. Returns false if `poll` stopped it.
  virtual bool run(const i64* sequence, i64 count, const DensePoll& poll) = 0;
  // Writes the best value of each variable that a step eliminates, from the messages and output ranges of all steps.
  virtual void decode(int* assignment) = 0;
  // Runs the steps of another program over the same arena, which `run` knows nothing of; writes their output ranges.
  virtual bool run_other(const i64* words, const i64* starts, i64 count, double* peaks, const DensePoll& poll) = 0;
};

// The functions are one source compiled for several instruction sets.
using DenseFunction = std::unique_ptr<DenseExecutor> (*)(const DenseRun&);
DenseFunction dense_function();
const char* dense_instruction_set();

}  // namespace elimina
