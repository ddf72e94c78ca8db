// Depth-first search below an open node, to the end of its subtree or for a number of nodes.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "network/extensions.hpp"
#include "propagator.hpp"

namespace elimina::consistency {

// An open node: the first `length` decisions of a path and, unless its variable is -1, the decision `last`. The node's
// subtree is still to be searched.
struct Open {
  Cost bound = 0;
  std::shared_ptr<const std::vector<Decision>> path;
  std::size_t length = 0;
  Decision last{-1, 0, Rule::is};
};

class DepthFirstSearch {
 public:
  // `count`: number of best solutions to find; if it is 1, each solution must cost less than the one before.
  explicit DepthFirstSearch(const Network& network, std::size_t count = 1)
      : network_(network), propagator_(network), extensions_(count), finds_one_(count == 1) {}

  // `top`: only cheaper solutions count. `slack`: see `Propagator::propagate`. `stop`: ends a run when it becomes true.
  struct Limits {
    Cost top, slack;
    const std::atomic<bool>* stop;
  };

  // Makes the root consistent. Returns false if no solution is cheaper than the top.
  bool prepare(const Limits& limits);

  // Moves to an open node. Returns false if nothing below it is cheaper than the top.
  bool enter(const Open& open, const Limits& limits);

  // Continues the search until it finds a solution, visits the last node of the subtree, or has visited `nodes` nodes.
  // Returns true if it ended at a solution.
  bool run(const Limits& limits, std::uint64_t nodes);

  const std::vector<int>& solution() const { return solution_; }

  // Goes back to the root. Returns the open nodes that remain in the subtree; none if the subtree was searched to its
  // end.
  std::vector<Open> release_open();

  // Tries these values first, wherever they have cost 0.
  void prefer(const std::vector<int>& value) { preferred_ = value; }

  void exchange_weights(std::vector<double>& of_all) { propagator_.exchange_weights(of_all); }

  Cost bound() const { return propagator_.state().constant(); }
  const Propagator& propagator() const { return propagator_; }
  std::uint64_t nodes() const { return nodes_; }
  std::uint64_t failures() const { return failures_; }
  std::uint64_t replayed() const { return replayed_; }  // number of replayed decisions
  bool done() const { return done_; }

  // True after a solution, as long as the next solutions may differ from it in eliminated variables only.
  bool is_extending() const { return extensions_.is_started(); }

 private:
  struct Frame {
    Decision decision;
    std::size_t length;  // length of the path before the decision
    Cost bound;
  };

  Decision decision_on(Var v);
  bool back(const Limits& limits);
  Var choose() const;
  int value_of(Var v) const;

  const Network& network_;
  Propagator propagator_;
  network::Extensions<Propagator> extensions_;
  bool finds_one_;
  std::vector<Decision> path_;
  std::vector<Frame> frames_;
  std::vector<int> solution_, preferred_, values_;
  Var last_conflict_ = -1;
  bool done_ = true;
  std::uint64_t nodes_ = 0, failures_ = 0, replayed_ = 0;
};

}  // namespace elimina::consistency
