// Functions that add bindings to the module, one for each topic. Each is defined in the file named after its topic.
#pragma once
#include <nanobind/nanobind.h>

#include <type_traits>

// Python refers to the core's objects and never copies them: copy constructors need not be compiled.
template <class T>
  requires(std::is_class_v<T> && !requires { typename T::value_type; })
struct nanobind::detail::is_copy_constructible<T, int> : std::false_type {};

namespace elimina {
void bind_stop(nanobind::module_& m);
namespace text {
void bind_text(nanobind::module_& m);
}
namespace order {
void bind_order(nanobind::module_& m);
}
namespace plan {
void bind_plan(nanobind::module_& m);
}
namespace tables {
void bind_tables(nanobind::module_& m);
}
namespace approx {
void bind_samples(nanobind::module_& m);
}
void bind_bucket_decoding(nanobind::module_& m);
void bind_paths(nanobind::module_& m);
void bind_dense(nanobind::module_& m);
namespace sparse {
void bind_rows(nanobind::module_& m);
}
namespace filter {
void bind_filter(nanobind::module_& m);
}
namespace network {
void bind_local_search(nanobind::module_& m);
}
namespace search {
void bind_search(nanobind::module_& m);
}
namespace approx {
void bind_approx(nanobind::module_& m);
void bind_regions(nanobind::module_& m);
void bind_block_gibbs(nanobind::module_& m);
void bind_cutset_conditioning(nanobind::module_& m);
void bind_linked_trees(nanobind::module_& m);
}  // namespace approx
namespace consistency {
void bind_consistency(nanobind::module_& m);
}
namespace cp {
void bind_cp(nanobind::module_& m);
}
namespace tsp {
void bind_tsp(nanobind::module_& m);
}
namespace cp {
void bind_flatzinc(nanobind::module_& m);
}
namespace dcop {
void bind_dcop(nanobind::module_& m);
}
namespace markov {
void bind_markov(nanobind::module_& m);
}
namespace approx {
void bind_weighted_mini_buckets(nanobind::module_& m);
}
}  // namespace elimina
