// Local search on elimination trees.
#pragma once
#include <memory>

#include "order/graph.hpp"

namespace elimina::order {

// Vertices 0 .. inner-1 of `graph` are to be eliminated, in `order`; the other vertices (the separator of a subtree's
// root) stay.
struct Patch {
  Graph graph;
  Vertex inner;
  Order order;
};

struct Schedule {
  double hot, cold;     // first and last temperature, in log2 of the cells of a pair of buckets
  std::int64_t sweeps;  // number of proposals for each vertex
};

inline constexpr Vertex largest_patch = 2048;

// Simulated annealing. A move swaps a vertex of the elimination tree with its parent. Only these two buckets change:
// the upper one exchanges its own variable, and the lower one becomes the union of its new children's messages. This is
// the elimination-tree form of local rotations of contraction trees (Kalachev, Panteleev, Yung, 2021, "Multi-tensor
// contraction for XEB verification of quantum circuits").
class Annealer {
 public:
  virtual ~Annealer() = default;
  // Starts from the best order so far, and returns true if it finds a better one.
  virtual bool anneal(const Schedule& schedule, Random& random, Clock& clock) = 0;
  virtual const Order& best() const = 0;
};

// Prepares the annealing of a patch. `limit`: log2 of the cells of the largest acceptable table; above it, costs rise
// steeply.
std::unique_ptr<Annealer> make_annealer(const Patch& patch, double limit);

// Cuts the order's elimination tree into connected pieces of at most `piece` vertices, anneals each piece, and joins
// the results.
Order anneal_pieces(const Graph& graph, const Order& order, Vertex piece, const Schedule& schedule, double limit,
                    Random& random, Clock& clock);

// Limit on log2 of a message's cells: larger messages exceed the annealer's arithmetic and any memory.
inline constexpr double annealable = 500;

}  // namespace elimina::order
