#include "exec/paths.hpp"

#include <nanobind/stl/string_view.h>

#include <string>

#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace elimina {
namespace {

nb::dict path_counts() {
  nb::dict counts;
  for (int number = 0; number < path_total(); ++number)
    counts[nb::str(path_name(number).data(), path_name(number).size())] = path_count(number);
  return counts;
}

}  // namespace

void bind_paths(nb::module_& m) {
  m.def("count_paths", &count_paths, "on"_a,
        "Set the count of every executor path to 0, and start counting, or stop it if `on` is False.");
  m.def("path_counts", &path_counts, nb::sig("def path_counts() -> dict[str, int]"),
        "Return how often each executor path was taken while paths were counted.");
  m.def(
      "count_path", [](std::string_view name) { count_path(name); }, "name"_a,
      "Count an executor path; raise IndexError if there is none of this name.");
}

}  // namespace elimina
