#include "exec/dense/dense.hpp"

#include "exec/dense/isa.hpp"

namespace elimina {
namespace {

struct Choice {
  DenseFunction function;
  const char* name;
};

Choice choose() {
#if defined(ELIMINA_X86_DISPATCH)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return {&avx512::make_dense, "avx512"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma"))
    return {&avx2::make_dense, "avx2"};
#endif
  return {&baseline::make_dense, "baseline"};
}

const Choice choice = choose();

}  // namespace

DenseFunction dense_function() { return choice.function; }
const char* dense_instruction_set() { return choice.name; }

}  // namespace elimina
