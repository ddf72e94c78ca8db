#include "module.hpp"

void bind_order(nanobind::module_&) {}
