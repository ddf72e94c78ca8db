// Minimisation by branch and bound with soft local consistency at each node.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "depth_first_search.hpp"
#include "network/solutions.hpp"

namespace elimina::consistency {

struct Limits {
  double seconds;
  std::uint64_t nodes;
  std::size_t memory;  // approximate bytes of open nodes
  // Called about five times a second from the calling thread, with the best solution if it is new (else null). Returns
  // false to stop the search.
  std::function<bool(Cost lower, Cost best, std::uint64_t nodes, const std::vector<int>* value)> poll;
};

// Hybrid best-first search (Allouche, de Givry, Katsirelos, Schiex and Zytnicki, 2015): each thread takes the open node
// with the least bound and searches depth-first below it for a number of failures. The remaining nodes of its subtree
// are then open again. The number of failures adapts, so that replaying decisions stays a small part of the work.
class Search {
 public:
  // `step`: smallest difference between the costs of two solutions, or the smallest that matters; `slack`: see
  // `Propagator::propagate`; `count`: number of best solutions to find.
  Search(network::Network model, std::vector<Var> order, Cost step, Cost slack, int threads, std::size_t count = 1);

  // Takes a solution that was found elsewhere. From now on, only better solutions count, and the values of this one are
  // tried first.
  void update_incumbent(Cost cost, const std::vector<int>& value);

  // Adds a solution to the best ones, and then cheap solutions that differ from one of the best in one variable.
  void add_solution(const std::vector<int>& value);

  // Continues the search up to the limits; returns true if it is complete.
  bool run(const Limits& limits);

  // `take_open` removes the open nodes and returns them. `replace_open` replaces them by those of another search of the
  // same model.
  std::vector<Open> take_open() { return std::exchange(open_, {}); }
  void replace_open(std::vector<Open> open);

  bool has_solution() const { return solution_count() > 0; }
  std::vector<int> best() const { return solution(0); }
  Cost cost() const { return cost_; }  // cost of the best solution; a forbidden cost if there is none

  // Returns one of the best solutions so far; rank 0 is the best one.
  std::vector<int> solution(std::size_t rank) const { return network_.outer(best_.solutions()[rank].value); }
  std::size_t solution_count() const { return best_.solutions().size(); }
  Cost bound() const { return lower_; }

  // Estimated share of the tree that has been searched, if the two sides of each decision are equally large (P. Kilby
  // and others, "Estimating search tree size", AAAI 2006).
  double progress() const;
  Cost top() const { return top_; }  // only cheaper solutions count
  std::uint64_t nodes() const { return nodes_; }

  // The network, and its propagator at the root, after the root was made consistent.
  const Network& network() const { return network_; }
  const Propagator& root() const { return depth_first_searches_[0].propagator(); }

 private:
  struct Later {
    bool operator()(const Open& a, const Open& b) const {
      return a.bound != b.bound ? a.bound > b.bound : a.length < b.length;
    }
  };

  using Clock = std::chrono::steady_clock;

  void work(std::size_t number);
  bool pop_node(std::size_t number, Open& node);
  void explore(DepthFirstSearch& depth_first, const Open& node);
  void push_nodes(std::size_t number, std::vector<Open> nodes);
  void offer(const std::vector<int>& value);
  void note_solutions();
  bool report(const Limits& limits);
  void note_bound();
  void adapt(const DepthFirstSearch& depth_first);
  bool is_over() const { return stop_ || nodes_ >= most_nodes_ || Clock::now() >= deadline_; }
  DepthFirstSearch::Limits limits() const { return {top_, slack_, &stop_}; }

  const Network network_;
  const Cost step_, slack_;
  std::vector<DepthFirstSearch> depth_first_searches_;
  std::vector<Open> open_;       // a heap
  bool is_possible_ = true;      // true if a solution below the top is possible at the root
  std::vector<double> weights_;  // weights of the functions, learned by all threads
  std::vector<Cost> active_;     // bound of each thread's node; `forbidden` if it has none
  network::BestSolutions best_;
  std::vector<int> preferred_;
  std::atomic<Cost> cost_ = network::forbidden, top_, lower_ = 0;
  std::atomic<std::uint64_t> nodes_ = 0, failures_ = 1;
  std::atomic<int> waiting_ = 0;        // threads without a node; if there are any, the others soon return their nodes
  Cost reported_ = network::forbidden;  // best cost in the last report
  std::uint64_t most_nodes_ = 0;
  std::chrono::time_point<Clock, std::chrono::duration<double>> deadline_;
  std::size_t most_open_ = 0;
  std::atomic<bool> stop_ = false, has_room_ = true;
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace elimina::consistency
