#include "module.hpp"

void bind_text(nanobind::module_&) {}
