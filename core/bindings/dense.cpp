#include "module.hpp"

void bind_dense(nanobind::module_&) {}
