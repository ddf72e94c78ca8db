#include "depth_first_search.hpp"

#include <algorithm>

namespace elimina::consistency {

namespace {

// Domains of more values are halved; smaller ones are branched on value by value.
constexpr int most_values = 10;

}  // namespace

bool DepthFirstSearch::prepare(const Limits& limits) { return propagator_.propagate(limits.top, limits.slack); }

bool DepthFirstSearch::enter(const Open& open, const Limits& limits) {
  frames_.clear();
  path_.clear();
  if (open.path) path_.assign(open.path->begin(), open.path->begin() + static_cast<std::ptrdiff_t>(open.length));
  if (open.last.var >= 0) path_.push_back(open.last);
  replayed_ += path_.size();
  propagator_.mark();
  done_ = true;
  for (const Decision& decision : path_) {
    if (propagator_.decide(decision)) continue;
    propagator_.forget();
    return false;
  }
  ++nodes_;
  done_ = !propagator_.propagate(limits.top, limits.slack);
  return !done_;
}

// Undoes the decisions back to the latest one with a possible opposite, and takes the opposite; returns false if there
// is none.
bool DepthFirstSearch::back(const Limits& limits) {
  while (!frames_.empty()) {
    const Frame frame = frames_.back();
    frames_.pop_back();
    propagator_.undo();
    path_.resize(frame.length);
    last_conflict_ = frame.decision.var;
    if (frame.bound >= limits.top) continue;
    const Decision opposite = frame.decision.opposite();
    path_.push_back(opposite);
    ++nodes_;
    if (propagator_.decide(opposite) && propagator_.propagate(limits.top, limits.slack)) return true;
  }
  done_ = true;
  return false;
}

bool DepthFirstSearch::run(const Limits& limits, std::uint64_t nodes) {
  const State& state = propagator_.state();
  for (const std::uint64_t end = nodes_ + nodes;
       !done_ && nodes_ < end && !limits.stop->load(std::memory_order_relaxed);) {
    if (state.free().empty()) {
      if (!extensions_.is_started()) {
        solution_.resize(network_.size.size());
        for (Var v = 0; v < network_.count(); ++v) solution_[v] = state.value(v);
      }
      if (finds_one_) {
        propagator_.extend(solution_);
        back({std::min(limits.top, state.constant()), limits.slack, limits.stop});
        return true;
      }
      if (!extensions_.is_started()) extensions_.start(propagator_, state.constant(), solution_);
      if (extensions_.next(propagator_, limits.top, solution_)) return true;
      extensions_.end();
      back(limits);
      continue;
    }
    const Var v = choose();
    const Decision decision = decision_on(v);
    frames_.push_back({decision, path_.size(), state.constant()});
    propagator_.mark();
    path_.push_back(decision);
    propagator_.decide(decision);
    ++nodes_;
    if (propagator_.propagate(limits.top, limits.slack)) continue;
    ++failures_;
    back(limits);
  }
  return false;
}

std::vector<Open> DepthFirstSearch::release_open() {
  std::vector<Open> result;
  const Cost reached = bound();
  extensions_.end();
  while (propagator_.state().depth() > 0) propagator_.undo();
  if (done_) return result;
  const auto path = std::make_shared<const std::vector<Decision>>(path_);
  for (const Frame& frame : frames_) result.push_back({frame.bound, path, frame.length, frame.decision.opposite()});
  Open here{reached, path, path->size(), {-1, 0, Rule::is}};
  if (!path->empty()) here.length = path->size() - 1, here.last = path->back();
  result.push_back(here);
  done_ = true;
  return result;
}

Var DepthFirstSearch::choose() const {
  const State& state = propagator_.state();
  if (last_conflict_ >= 0 && state.is_free(last_conflict_)) return last_conflict_;
  Var best = -1;
  double least = 0;
  Cost best_high = 0;
  for (const Var v : state.free()) {
    if (best >= 0 && state.count(v) / (1 + propagator_.most_weight(v)) > least) continue;
    const double ratio = state.count(v) / (1 + propagator_.weight(v));
    if (best >= 0 && ratio > least) continue;
    Cost high = 0;
    for (const int x : state.values(v)) high = std::max(high, state.unary(v)[x]);
    if (best >= 0 && ratio == least && (high < best_high || (high == best_high && v > best))) continue;
    best = v;
    least = ratio;
    best_high = high;
  }
  return best;
}

// Returns a decision on one value, or on half of a large domain.
Decision DepthFirstSearch::decision_on(Var v) {
  const int x = value_of(v);
  const State& state = propagator_.state();
  if (state.count(v) <= most_values) return {v, x, Rule::is};
  values_.assign(state.values(v).begin(), state.values(v).end());
  const auto middle = values_.begin() + (state.count(v) - 1) / 2;
  std::nth_element(values_.begin(), middle, values_.end());
  return {v, *middle, x <= *middle ? Rule::up_to : Rule::beyond};
}

int DepthFirstSearch::value_of(Var v) const {
  const State& state = propagator_.state();
  const int support = propagator_.support(v);
  if (!preferred_.empty() && state.has(v, preferred_[v]) && state.unary(v)[preferred_[v]] == 0) return preferred_[v];
  if (state.has(v, support) && state.unary(v)[support] == 0) return support;
  for (const int x : state.values(v))
    if (state.unary(v)[x] == 0) return x;
  return state.value(v);
}

}  // namespace elimina::consistency
