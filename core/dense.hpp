// Running packed programs (elimina/program.hpp) on the CPU.
#pragma once
#include <functional>

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
  const i64* sequence;  // the numbers of the steps to run
  i64 steps;
  void* arena;
  double* peaks;    // [steps][2]
  int* assignment;  // nullptr: no decoding
  int threads;
  // Called on the calling thread now and then with the work done so far; false: stop.
  std::function<bool(double)> poll;
};

// Returns false if `poll` stopped it. The functions are one source compiled for several instruction sets.
using DenseFunction = bool (*)(const DenseRun&);
DenseFunction dense_function();
const char* dense_instruction_set();

}  // namespace elimina
