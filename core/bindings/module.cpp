#include "module.hpp"

NB_MODULE(_core, m) {
  m.doc() = "elimina's compiled core.";
  // What a thread that was left alone holds when the interpreter ends is no leak, and nothing that a user can act on.
  nanobind::set_leak_warnings(false);
  bind_stop(m);
  bind_text(m);
  bind_order(m);
  bind_tables(m);
  bind_plan(m);
  bind_dense(m);
  bind_rows(m);
  bind_filter(m);
  bind_search(m);
  bind_consistency(m);
  bind_cp(m);
  bind_tsp(m);
  bind_flatzinc(m);
}
