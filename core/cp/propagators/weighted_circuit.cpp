// One cycle of all nodes along undirected edges, and its length. Edges are Booleans, so that a search need not choose a
// direction. The bound on the length is Held and Karp's (Mathematical Programming 1, 1971). An edge is excluded if it
// would raise the bound too much, and required if the bound would rise too much without it (Benchimol, van Hoeve,
// Regin, Rousseau and Rueher, Constraints 17, 2012).
#include <algorithm>
#include <memory>

#include "cp/constraint_call.hpp"
#include "tsp/one_tree.hpp"

namespace elimina::cp {

namespace {

using tsp::Graph;
using tsp::Length;
using tsp::OneTree;
using tsp::Use;

// One cycle of all nodes by its edges: two edges at each node, and no cycle of fewer nodes. An edge is in the cycle
// exactly if one of its ends is the other's successor.
class CycleOfEdges final : public Propagator {
 public:
  CycleOfEdges(std::shared_ptr<const Graph> graph, Views successors, Views edges)
      : Propagator(Priority::linear), graph_(std::move(graph)), successors_(std::move(successors)),
        edges_(std::move(edges)), at_(successors_.size()) {
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      at_[from(e)].push_back(e);
      at_[to(e)].push_back(e);
    }
  }

  void attach(Engine& engine) override {
    const std::size_t n = successors_.size();
    far_ = engine.trail().make(n, 0);
    length_ = engine.trail().make(n, 0);
    joined_ = engine.trail().make(edges_.size(), 0);
    for (std::size_t i = 0; i < n; ++i) {
      engine.trail().set(far_ + i, i);
      engine.subscribe(*this, successors_[i], kDomain, static_cast<int>(i));
    }
    for (std::size_t e = 0; e < edges_.size(); ++e) engine.subscribe(*this, edges_[e], kFix, static_cast<int>(n + e));
  }

  Outcome propagate(Engine& engine) override {
    for (const int i : touched) {
      const auto index = static_cast<std::size_t>(i), n = successors_.size();
      if (index < n ? !look_at_node(engine.domains(), index) : !look_at_edge(engine, index - n)) return Outcome::failed;
    }
    return Outcome::again;
  }

 private:
  std::size_t from(std::size_t e) const { return static_cast<std::size_t>(graph_->from[e]); }
  std::size_t to(std::size_t e) const { return static_cast<std::size_t>(graph_->to[e]); }

  // Filters the edges at a node whose successor has lost values. The first call does so for all nodes, because some
  // edges may be impossible already.
  bool look_at_node(Domains& d, std::size_t i) {
    for (const std::size_t e : at_[i]) {
      const bool forwards = d.has(successors_[from(e)], graph_->to[e]),
                 backwards = d.has(successors_[to(e)], graph_->from[e]);
      if (!forwards && !backwards && !d.assign(edges_[e], 0)) return false;
      if (((forwards && d.fixed(successors_[from(e)])) || (backwards && d.fixed(successors_[to(e)]))) &&
          !d.assign(edges_[e], 1))
        return false;
      if (d.lo(edges_[e]) == 1 && !direct(d, e)) return false;
    }
    return enough_at(d, i);
  }

  bool direct(Domains& d, std::size_t e) {
    if (!d.has(successors_[from(e)], graph_->to[e])) return d.assign(successors_[to(e)], graph_->from[e]);
    return d.has(successors_[to(e)], graph_->from[e]) || d.assign(successors_[from(e)], graph_->to[e]);
  }

  bool look_at_edge(Engine& engine, std::size_t e) {
    Domains& d = engine.domains();
    if (!d.fixed(edges_[e])) return true;
    if (d.lo(edges_[e]) == 1) {
      if (!direct(d, e) || !join(engine, e)) return false;
    } else if (!d.remove(successors_[from(e)], graph_->to[e]) || !d.remove(successors_[to(e)], graph_->from[e])) {
      return false;
    }
    return enough_at(d, from(e)) && enough_at(d, to(e));
  }

  bool enough_at(Domains& d, std::size_t i) {
    std::size_t in = 0, possible = 0;
    for (const std::size_t e : at_[i]) {
      in += d.lo(edges_[e]) == 1;
      possible += d.hi(edges_[e]) == 1;
    }
    if (in > 2 || possible < 2) return false;
    if (in < 2 && possible > 2) return true;
    for (const std::size_t e : at_[i])
      if (!d.fixed(edges_[e]) && !d.assign(edges_[e], in < 2)) return false;
    return true;
  }

  // Joins two paths of chosen edges, and excludes the edges that would close the new path too early. Each end of a path
  // stores the other end and the number of edges. Returns false if the edge itself closes a path too early.
  bool join(Engine& engine, std::size_t e) {
    Trail& trail = engine.trail();
    if (trail.get(joined_ + e)) return true;
    trail.set(joined_ + e, 1);
    const std::size_t first = trail.get(far_ + from(e)), last = trail.get(far_ + to(e));
    const std::size_t length = trail.get(length_ + from(e)) + trail.get(length_ + to(e)) + 1;
    if (first == to(e)) return trail.get(length_ + to(e)) + 1 == successors_.size();
    trail.set(far_ + first, last);
    trail.set(far_ + last, first);
    trail.set(length_ + first, length);
    trail.set(length_ + last, length);
    if (length + 1 == successors_.size()) return true;
    for (const std::size_t other : at_[first])
      if ((from(other) == last || to(other) == last) && other != e && !engine.domains().assign(edges_[other], 0))
        return false;
    return true;
  }

  std::shared_ptr<const Graph> graph_;
  Views successors_, edges_;
  std::vector<std::vector<std::size_t>> at_;
  std::size_t far_ = 0, length_ = 0, joined_ = 0;
};

// Propagator of Held and Karp's bound: it raises the least length, and filters edges. Its multipliers start from those
// of the search's parent node.
class CycleBound final : public Propagator {
 public:
  CycleBound(std::shared_ptr<const Graph> graph, Views edges, View length)
      : Propagator(Priority::costly), graph_(std::move(graph)), edges_(std::move(edges)), length_(length),
        tree_(*graph_, OneTree::scale_of(*graph_)), use_(edges_.size()),
        multipliers_(static_cast<std::size_t>(graph_->cities)) {}

  void attach(Engine& engine) override {
    first_multiplier_ = engine.trail().make(multipliers_.size(), 0);
    is_begun_ = engine.trail().make(1, 0);
    for (const View x : edges_) engine.subscribe(*this, x, kFix);
    engine.subscribe(*this, length_, kUpper);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    read(engine);
    const bool is_first = !engine.trail().get(is_begun_);
    const Value upper = std::clamp(d.hi(length_), -kLimit, kLimit) * tree_.scale();
    if (!tree_.ascend(use_, upper, is_first ? first_steps() : kSteps, multipliers_) || tree_.value() > upper)
      return Outcome::failed;
    save(engine);
    if (!d.set_lo(length_, ceil_div(tree_.value(), tree_.scale()))) return Outcome::failed;
    const bool all = std::none_of(use_.begin(), use_.end(), [](Use use) { return use == Use::open; });
    if (all) return d.assign(length_, total()) ? Outcome::entailed : Outcome::failed;
    return filter(engine, upper - tree_.value());
  }

 private:
  static constexpr int kSteps = 30;

  // Returns the number of steps of the first call: fewer for many edges, so that a call does not take seconds.
  int first_steps() const {
    return static_cast<int>(std::clamp<std::size_t>(2'000'000 / (edges_.size() + 1), kSteps, 1000));
  }

  void read(const Engine& engine) {
    const Domains& d = engine.domains();
    for (std::size_t e = 0; e < edges_.size(); ++e)
      use_[e] = d.lo(edges_[e]) == 1 ? Use::in : d.hi(edges_[e]) == 0 ? Use::out : Use::open;
    for (std::size_t i = 0; i < multipliers_.size(); ++i)
      multipliers_[i] = engine.trail().number(first_multiplier_ + i);
  }

  void save(Engine& engine) {
    engine.trail().set(is_begun_, 1);
    for (std::size_t i = 0; i < multipliers_.size(); ++i)
      engine.trail().set_number(first_multiplier_ + i, multipliers_[i]);
  }

  Length total() const {
    Length sum = 0;
    for (std::size_t e = 0; e < edges_.size(); ++e) sum += use_[e] == Use::in ? graph_->length[e] : 0;
    return sum;
  }

  Outcome filter(Engine& engine, Length slack) {
    Domains& d = engine.domains();
    const std::vector<Length>& rises = tree_.rises();
    bool changes = false;
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      if (use_[e] != Use::open || rises[e] <= slack) continue;
      changes = true;
      if (!d.assign(edges_[e], tree_.has()[e])) return Outcome::failed;
    }
    if (!changes) advise(engine, rises, slack);
    return changes ? Outcome::again : Outcome::fixpoint;
  }

  // Sets the urgencies of edges for the next decision. Most urgent is an edge of the 1-tree at a node with more than
  // two edges of the tree and few open edges; of several, the one whose absence costs most.
  void advise(Engine& engine, const std::vector<Length>& rises, Length slack) {
    std::vector<int> open(multipliers_.size(), 0);
    for (std::size_t e = 0; e < edges_.size(); ++e)
      for (const int node : {graph_->from[e], graph_->to[e]})
        open[static_cast<std::size_t>(node)] += use_[e] == Use::open;
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      if (use_[e] != Use::open) continue;
      double urgency = tree_.has()[e] ? 1 : 0;
      for (const int node : {graph_->from[e], graph_->to[e]}) {
        const auto i = static_cast<std::size_t>(node);
        if (tree_.has()[e] && tree_.degrees()[i] > 2) urgency = std::max(urgency, 2 + 1.0 / open[i]);
      }
      const double cost = static_cast<double>(rises[e]) / static_cast<double>(slack + 1);
      engine.weigh(edges_[e], urgency + (urgency > 1 ? 0.01 * cost : 0));
    }
  }

  std::shared_ptr<const Graph> graph_;
  Views edges_;
  View length_;
  OneTree tree_;
  std::vector<Use> use_;
  std::vector<Length> multipliers_;
  std::size_t first_multiplier_ = 0, is_begun_ = 0;
};

// Reads the graph from the arguments: both ends and the length of each edge. Each edge is stored once, from its smaller
// end to its larger one.
Graph undirected_graph(const ConstraintCall& call) {
  for (const std::size_t i : {2, 3, 4}) call.same_length(1, i);
  const auto nodes = static_cast<Value>(call.length(0));
  if (nodes < 3) call.refuse("there are three nodes at least, not " + std::to_string(nodes));
  Graph graph{static_cast<int>(nodes), {}, {}, call.values(3)};
  std::vector<std::pair<Value, Value>> pairs;
  const Values from = call.values(1), to = call.values(2);
  for (std::size_t e = 0; e < from.size(); ++e) {
    const auto [least, largest] = std::minmax(from[e], to[e]);
    if (least < 0 || largest >= nodes || least == largest)
      call.refuse("edge " + std::to_string(from[e]) + " to " + std::to_string(to[e]) +
                  " is not between two nodes of 0 to " + std::to_string(nodes - 1));
    pairs.emplace_back(least, largest);
    graph.from.push_back(static_cast<int>(least));
    graph.to.push_back(static_cast<int>(largest));
  }
  std::sort(pairs.begin(), pairs.end());
  const auto twice = std::adjacent_find(pairs.begin(), pairs.end());
  if (twice != pairs.end())
    call.refuse("edge " + std::to_string(twice->first) + " to " + std::to_string(twice->second) + " is given twice");
  if (OneTree::scale_of(graph) == 0)
    throw Refused("weighted_circuit: the lengths times the nodes are beyond 2^57: use smaller units");
  return graph;
}

}  // namespace

// Posts a circuit with its length. Arguments: successors, both ends and the length of each edge, a Boolean of each edge
// (1: it is in the circuit), the circuit's length.
void post_weighted_circuit(ConstraintCall& call) {
  Graph graph = undirected_graph(call);
  Engine& engine = call.engine();
  const Views successors = call.views(0), edges = call.booleans(4);
  const View length = call.view(5);
  std::vector<Values> neighbours(successors.size());
  for (std::size_t e = 0; e < graph.edges(); ++e) {
    neighbours[static_cast<std::size_t>(graph.from[e])].push_back(graph.to[e]);
    neighbours[static_cast<std::size_t>(graph.to[e])].push_back(graph.from[e]);
  }
  for (std::size_t i = 0; i < successors.size(); ++i) post_member(engine, successors[i], neighbours[i]);
  const auto shared = std::make_shared<const Graph>(std::move(graph));
  engine.post(std::make_unique<CycleOfEdges>(shared, successors, edges));
  engine.post(std::make_unique<CycleBound>(shared, edges, length));
  post_circuit(engine, successors);
}

}  // namespace elimina::cp
