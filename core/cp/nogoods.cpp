#include "nogoods.hpp"

#include <algorithm>

namespace elimina::cp {

void Nogoods::add(Engine& engine, std::vector<Step> branch) {
  const auto count = static_cast<std::size_t>(engine.domains().count());
  watches_.resize(count);
  is_subscribed_.resize(count, 0);
  for (const Step& step : branch) {
    // A variable that is fixed now needs no subscription: it stays fixed while these steps are kept.
    const int v = step.decision.x.var;
    if (is_subscribed_[static_cast<std::size_t>(v)] || engine.domains().fixed(v)) continue;
    engine.subscribe(*this, View{v}, kDomain, v);
    is_subscribed_[static_cast<std::size_t>(v)] = 1;
  }
  const std::size_t first = steps_.size();
  steps_.insert(steps_.end(), branch.begin(), branch.end());
  is_watched_.resize(steps_.size(), 0);
  branches_.push_back({first, steps_.size(), engine.trail().make(1, first)});
  engine.schedule(*this);
}

void Nogoods::clear() {
  steps_.clear();
  branches_.clear();
  watches_.clear();
  is_watched_.clear();
  seen_ = 0;
}

Outcome Nogoods::propagate(Engine& engine) {
  for (; seen_ < branches_.size(); ++seen_)
    if (!revise(engine, branches_[seen_])) return Outcome::failed;
  for (const int v : touched) {
    if (static_cast<std::size_t>(v) >= watches_.size()) continue;
    // Visiting a branch may append watches to this list, so only those present before are visited.
    const std::vector<Watch>& list = watches_[static_cast<std::size_t>(v)];
    for (std::size_t i = 0, count = list.size(); i < count; ++i) {
      const Branch& branch = branches_[list[i].branch];
      if (list[i].step >= engine.trail().get(branch.at) && !revise(engine, branch)) return Outcome::failed;
    }
  }
  return Outcome::again;
}

// Applies the negations of the refuted decisions of a branch, up to the first taken decision that does not hold yet.
// Returns false if a domain becomes empty.
bool Nogoods::revise(Engine& engine, const Branch& branch) {
  Domains& d = engine.domains();
  std::size_t i = engine.trail().get(branch.at);
  for (; i < branch.end; ++i) {
    const Decision decision = steps_[i].decision;
    if (steps_[i].refuted ? !decision.negated().apply(d) : !decision.holds(d)) break;
  }
  if (i < branch.end && steps_[i].refuted) return false;
  const bool is_over = i == branch.end || steps_[i].decision.negated().holds(d);
  engine.trail().set(branch.at, is_over ? branch.end : i);
  return is_over || look_ahead(engine, branch, i);
}

// Applies the negation of `first` if some refuted decision holds, and no taken decision above it but `first` is still
// open. Returns false if the domain becomes empty.
bool Nogoods::look_ahead(Engine& engine, const Branch& branch, std::size_t first) {
  Domains& d = engine.domains();
  watch(branch, first);
  for (std::size_t i = first + 1; i < branch.end; ++i) {
    watch(branch, i);
    const bool holds = steps_[i].decision.holds(d);
    if (!steps_[i].refuted && !holds) return true;
    if (!steps_[i].refuted || !holds) continue;
    engine.trail().set(branch.at, branch.end);
    return steps_[first].decision.negated().apply(d);
  }
  return true;
}

void Nogoods::watch(const Branch& branch, std::size_t step) {
  if (is_watched_[step]) return;
  is_watched_[step] = 1;
  watches_[static_cast<std::size_t>(steps_[step].decision.x.var)].push_back({number(branch), step});
}

}  // namespace elimina::cp
