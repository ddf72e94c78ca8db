// Tasks on a resource, by the time-table of what they need for sure (Aggoun and Beldiceanu, 1993).
#include <algorithm>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

class Cumulative final : public Propagator {
 public:
  Cumulative(Views starts, Views durations, Views demands, View capacity)
      : Propagator(Priority::quadratic),
        starts_(std::move(starts)),
        durations_(std::move(durations)),
        demands_(std::move(demands)),
        capacity_(capacity) {}

  void attach(Engine& engine) override {
    engine.subscribe(*this, capacity_, kBounds);
    for (const auto* views : {&starts_, &durations_, &demands_})
      for (const View x : *views) engine.subscribe(*this, x, kBounds);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const auto* views : {&durations_, &demands_})
      for (const View x : *views)
        if (!d.set_lo(x, 0)) return Outcome::failed;
    if (!build(d)) return Outcome::failed;
    for (std::size_t i = 0; i < starts_.size(); ++i)
      if (!shift(d, i)) return Outcome::failed;
    return Outcome::again;
  }

 private:
  // From `begin` to the next piece's begin, so much is needed.
  struct Piece {
    Value begin, height;
  };

  // When a task runs for sure: from its latest start to its earliest end.
  bool is_sure(const Domains& d, std::size_t i) const { return d.hi(starts_[i]) < d.lo(starts_[i]) + d.lo(durations_[i]); }

  bool build(Domains& d) {
    steps_.clear();
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      const Value demand = d.lo(demands_[i]);
      if (demand == 0 || !is_sure(d, i)) continue;
      steps_.push_back({d.hi(starts_[i]), demand});
      steps_.push_back({d.lo(starts_[i]) + d.lo(durations_[i]), -demand});
    }
    std::sort(steps_.begin(), steps_.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    profile_.clear();
    Value height = 0, most = 0;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      height += steps_[k].height;
      if (k + 1 < steps_.size() && steps_[k + 1].begin == steps_[k].begin) continue;
      profile_.push_back({steps_[k].begin, height});
      most = std::max(most, height);
    }
    return d.set_lo(capacity_, most);
  }

  // What the others need in a piece.
  Value others(const Domains& d, std::size_t i, const Piece& piece) const {
    const bool own = is_sure(d, i) && d.hi(starts_[i]) <= piece.begin && piece.begin < d.lo(starts_[i]) + d.lo(durations_[i]);
    return piece.height - (own ? d.lo(demands_[i]) : 0);
  }

  // Starts move past pieces that leave too little.
  bool shift(Domains& d, std::size_t i) const {
    const Value duration = d.lo(durations_[i]), demand = d.lo(demands_[i]), capacity = d.hi(capacity_);
    if (demand > capacity && duration > 0) return false;
    if (duration == 0 || demand == 0 || d.fixed(starts_[i])) return true;
    Value lo = d.lo(starts_[i]), hi = d.hi(starts_[i]);
    for (std::size_t k = 0; k + 1 < profile_.size() && profile_[k].begin < lo + duration; ++k)
      if (profile_[k + 1].begin > lo && others(d, i, profile_[k]) + demand > capacity) lo = profile_[k + 1].begin;
    for (std::size_t k = profile_.size(); k-- > 1;)
      if (profile_[k].begin > hi && profile_[k - 1].begin < hi + duration && others(d, i, profile_[k - 1]) + demand > capacity)
        hi = profile_[k - 1].begin - duration;
    return d.set_lo(starts_[i], lo) && d.set_hi(starts_[i], hi);
  }

  Views starts_, durations_, demands_;
  View capacity_;
  std::vector<Piece> steps_, profile_;
};

}  // namespace

void post_cumulative(Engine& engine, const Views& starts, const Views& durations, const Views& demands, View capacity) {
  engine.post(std::make_unique<Cumulative>(starts, durations, demands, capacity));
}

}  // namespace elimina::cp
