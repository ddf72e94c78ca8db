// One function per topic, defined in the file of that name.
#pragma once
#include <nanobind/nanobind.h>

void bind_stop(nanobind::module_& m);
void bind_text(nanobind::module_& m);
void bind_order(nanobind::module_& m);
void bind_plan(nanobind::module_& m);
void bind_tables(nanobind::module_& m);
void bind_dense(nanobind::module_& m);
void bind_rows(nanobind::module_& m);
void bind_filter(nanobind::module_& m);
void bind_local_search(nanobind::module_& m);
void bind_search(nanobind::module_& m);
void bind_consistency(nanobind::module_& m);
void bind_cp(nanobind::module_& m);
void bind_tsp(nanobind::module_& m);
void bind_flatzinc(nanobind::module_& m);
void bind_dcop(nanobind::module_& m);
