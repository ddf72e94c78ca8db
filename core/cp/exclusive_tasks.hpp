// Tasks that pairwise exclude each other, on some resource or by precedences, run one after another: cliques of such
// tasks get a constraint of their own (Baptiste and Le Pape, Constraints 5, 2000).
#pragma once

namespace elimina::cp {

class Solver;

// Posts constraints on cliques of exclusive tasks. Call it at the root, before the search.
void post_exclusive_tasks(Solver& solver);

}  // namespace elimina::cp
