// Cliques of tasks that pairwise exclude each other, on a resource or by precedences. The tasks of a clique run one
// after another, and get a constraint of their own (Baptiste and Le Pape, Constraints 5, 2000).
#pragma once

namespace elimina::cp {

class Solver;

// Posts constraints on cliques of exclusive tasks. Call it at the root, before the search.
void post_exclusive_tasks(Solver& solver);

}  // namespace elimina::cp
