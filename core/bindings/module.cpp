#include "module.hpp"

NB_MODULE(_core, m) {
  m.doc() = "elimina's compiled core.";
  // A daemon thread may hold objects when the interpreter ends. A warning about leaks would help no user.
  nanobind::set_leak_warnings(false);
  bind_stop(m);
  bind_text(m);
  bind_order(m);
  bind_tables(m);
  bind_plan(m);
  bind_dense(m);
  bind_rows(m);
  bind_filter(m);
  bind_local_search(m);
  bind_search(m);
  bind_consistency(m);
  bind_cp(m);
  bind_tsp(m);
  bind_flatzinc(m);
  bind_dcop(m);
}
