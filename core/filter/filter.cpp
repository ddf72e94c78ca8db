#include "filter.hpp"

namespace elimina::filter {

namespace baseline {
Report solve(const Model& model, const Options& options);
}
namespace bmi2 {
Report solve(const Model& model, const Options& options);
}

Report minimise(const Model& model, const Options& options) {
#if defined(ELIMINA_X86_DISPATCH)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma")) return bmi2::solve(model, options);
#endif
  return baseline::solve(model, options);
}

}  // namespace elimina::filter
