#pragma once
#include <nanobind/nanobind.h>

namespace elimina::cp {
void bind_cheapest_words(nanobind::module_& m);
}
