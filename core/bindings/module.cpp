#include "module.hpp"

NB_MODULE(_core, m) {
  m.doc() = "elimina's compiled core.";
  // A daemon thread may hold objects when the interpreter ends, which is not a leak.
  nanobind::set_leak_warnings(false);
  elimina::bind_stop(m);
  elimina::text::bind_text(m);
  elimina::order::bind_order(m);
  elimina::tables::bind_tables(m);
  elimina::plan::bind_plan(m);
  elimina::approx::bind_samples(m);
  elimina::bind_bucket_decoding(m);
  elimina::bind_paths(m);
  elimina::bind_dense(m);
  elimina::sparse::bind_rows(m);
  elimina::filter::bind_filter(m);
  elimina::network::bind_local_search(m);
  elimina::search::bind_search(m);
  elimina::approx::bind_approx(m);
  elimina::approx::bind_regions(m);
  elimina::approx::bind_block_gibbs(m);
  elimina::approx::bind_cutset_conditioning(m);
  elimina::approx::bind_linked_trees(m);
  elimina::consistency::bind_consistency(m);
  elimina::cp::bind_cp(m);
  elimina::tsp::bind_tsp(m);
  elimina::cp::bind_flatzinc(m);
  elimina::dcop::bind_dcop(m);
  elimina::markov::bind_markov(m);
  elimina::approx::bind_weighted_mini_buckets(m);
}
