// Circuits of successors: AllDifferent, and no cycle that leaves a node out (Caseau and Laburthe, ICLP 1997).
#include <algorithm>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

bool stay_inside(Domains& d, const Views& xs) {
  for (const View x : xs)
    if (!d.set_lo(x, 0) || !d.set_hi(x, static_cast<Value>(xs.size()) - 1)) return false;
  return true;
}

// One cycle of all nodes. In a path of fixed successors, each end stores the other end, and the first node stores the
// number of edges.
class OneCycle final : public Propagator {
 public:
  explicit OneCycle(Views xs) : Propagator(Priority::linear), xs_(std::move(xs)) {}

  void attach(Engine& engine) override {
    const std::size_t n = xs_.size();
    first_ = engine.trail().make(n, 0);
    last_ = engine.trail().make(n, 0);
    edges_ = engine.trail().make(n, 0);
    joined_ = engine.trail().make(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      engine.trail().set(first_ + i, i);
      engine.trail().set(last_ + i, i);
      engine.subscribe(*this, xs_[i], kFix, static_cast<int>(i));
    }
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (engine.level() == 0 && (!stay_inside(d, xs_) || !leave_themselves(d))) return Outcome::failed;
    for (const int i : touched)
      if (d.fixed(xs_[static_cast<std::size_t>(i)]) && !join(engine, static_cast<std::size_t>(i)))
        return Outcome::failed;
    return Outcome::again;
  }

 private:
  bool leave_themselves(Domains& d) const {
    for (std::size_t i = 0; i < xs_.size() && xs_.size() > 1; ++i)
      if (!d.remove(xs_[i], static_cast<Value>(i))) return false;
    return true;
  }

  bool join(Engine& engine, std::size_t i) {
    Trail& trail = engine.trail();
    Domains& d = engine.domains();
    if (trail.get(joined_ + i)) return true;
    trail.set(joined_ + i, 1);
    const auto next = static_cast<std::size_t>(d.lo(xs_[i]));
    const std::size_t first = trail.get(first_ + i), last = trail.get(last_ + next);
    const std::size_t edges = trail.get(edges_ + first) + trail.get(edges_ + next) + 1;
    if (first == next) return trail.get(edges_ + first) + 1 == xs_.size();
    trail.set(last_ + first, last);
    trail.set(first_ + last, first);
    trail.set(edges_ + first, edges);
    return edges + 1 == xs_.size() || d.remove(xs_[last], static_cast<Value>(first));
  }

  Views xs_;
  std::size_t first_ = 0, last_ = 0, edges_ = 0, joined_ = 0;
};

// One cycle, or none, of the nodes that are not their own successors. No state is kept between calls: each call follows
// the paths from their first nodes.
class AtMostOneCycle final : public Propagator {
 public:
  explicit AtMostOneCycle(Views xs) : Propagator(Priority::quadratic), xs_(std::move(xs)), is_entered_(xs_.size()) {}

  void attach(Engine& engine) override {
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!stay_inside(d, xs_)) return Outcome::failed;
    std::fill(is_entered_.begin(), is_entered_.end(), 0);
    std::size_t inside = 0;
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      inside += !d.has(xs_[i], static_cast<Value>(i));
      if (has_left(d, i)) is_entered_[next(d, i)] = 1;
    }
    for (std::size_t i = 0; i < xs_.size(); ++i)
      if (has_left(d, i) && !is_entered_[i] && !follow(d, i, inside)) return Outcome::failed;
    return close(d) ? Outcome::again : Outcome::failed;
  }

 private:
  std::size_t next(const Domains& d, std::size_t i) const { return static_cast<std::size_t>(d.lo(xs_[i])); }
  bool has_left(const Domains& d, std::size_t i) const { return d.fixed(xs_[i]) && next(d, i) != i; }

  // Keeps a path from closing before it contains all nodes that cannot be their own successors; returns false if the
  // path has closed, or would have to.
  bool follow(Domains& d, std::size_t first, std::size_t inside) {
    std::size_t last = first, nodes = 1;
    for (; has_left(d, last); ++nodes) {
      last = next(d, last);
      is_entered_[last] = 2;
      if (nodes > xs_.size()) return false;
    }
    const std::size_t counted = nodes - (d.has(xs_[last], static_cast<Value>(last)) ? 1 : 0);
    return counted >= inside || d.remove(xs_[last], static_cast<Value>(first));
  }

  // If fixed successors form a cycle, makes all other nodes their own successors; returns false if one of them cannot
  // be. The nodes of a cycle have a predecessor (`is_entered_` is 1), but are on no path that `follow` has visited.
  bool close(Domains& d) {
    std::size_t start = 0;
    while (start < xs_.size() && !(has_left(d, start) && is_entered_[start] == 1)) ++start;
    if (start == xs_.size()) return true;
    for (std::size_t i = start; is_entered_[i] == 1; i = next(d, i)) is_entered_[i] = 3;
    for (std::size_t i = 0; i < xs_.size(); ++i)
      if (is_entered_[i] != 3 && !d.assign(xs_[i], static_cast<Value>(i))) return false;
    return true;
  }

  Views xs_;
  std::vector<std::uint8_t> is_entered_;
};

template <class Cycle>
void post_cycle(Engine& engine, const Views& successors, Side side) {
  if (successors.empty()) return;
  engine.post(std::make_unique<Cycle>(successors));
  post_all_different(engine, successors, Consistency::domain, side);
  if (successors.size() > 1) post_connected(engine, successors);
}

}  // namespace

void post_circuit(Engine& engine, const Views& successors, Side side) {
  post_cycle<OneCycle>(engine, successors, side);
}
void post_subcircuit(Engine& engine, const Views& successors, Side side) {
  post_cycle<AtMostOneCycle>(engine, successors, side);
}

}  // namespace elimina::cp
