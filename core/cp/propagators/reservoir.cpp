// A level between two limits, raised and lowered by events: filters by the least and the greatest possible level at
// each time.
#include <algorithm>
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

class Reservoir final : public Propagator {
 public:
  Reservoir(Views times, Values changes, Views presences, Value least, Value capacity)
      : Propagator(Priority::quadratic), times_(std::move(times)), presences_(std::move(presences)),
        changes_(std::move(changes)), least_(least), capacity_(capacity) {}

  void attach(Engine& engine) override {
    for (std::size_t i = 0; i < times_.size(); ++i)
      for (const View x : {times_[i], presences_[i]}) engine.subscribe(*this, x, kBounds);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!keep_above(d, 1, least_) || !keep_above(d, -1, -capacity_)) return Outcome::failed;
    return Outcome::again;
  }

 private:
  // `level`: level from `time` on. While steps are collected, it is the change of the level at `time`.
  struct Step {
    Value time, level;
  };

  // Keeps the level from falling below a limit, by its greatest possible values. With the sign -1, all changes are
  // negated, which keeps the level from rising above -`limit`.
  bool keep_above(Domains& d, Value sign, Value limit) {
    steps_.assign(1, {-2 * kLimit, 0});
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const Value change = sign * changes_[i];
      if (change > 0 && d.hi(presences_[i]) == 1) steps_.push_back({d.lo(times_[i]), change});
      if (change < 0 && d.lo(presences_[i]) == 1) steps_.push_back({d.hi(times_[i]), change});
    }
    std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.time < b.time; });
    Value level = 0;
    std::size_t count = 0;
    for (std::size_t k = 0; k < steps_.size(); ++k) {
      level += steps_[k].level;
      if (k + 1 < steps_.size() && steps_[k + 1].time == steps_[k].time) continue;
      if (level < limit) return false;
      steps_[count++] = {steps_[k].time, level};
    }
    steps_.resize(count);
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const Value change = sign * changes_[i];
      if (d.hi(presences_[i]) == 0 || change == 0) continue;
      if (!(change > 0 ? hasten(d, i, change, limit) : delay(d, i, -change, limit))) return false;
    }
    return true;
  }

  // Forces an event to occur, and early enough, if the level would be too low without it. Returns false if the event
  // cannot.
  bool hasten(Domains& d, std::size_t i, Value change, Value limit) {
    const Value first = d.lo(times_[i]);
    for (const Step& step : steps_) {
      if (step.time < first || step.level - change >= limit) continue;
      return d.assign(presences_[i], 1) && d.set_hi(times_[i], step.time);
    }
    return true;
  }

  // Delays an event, or makes it absent, if the level would be too low with it; returns false if neither is possible.
  bool delay(Domains& d, std::size_t i, Value change, Value limit) {
    const bool is_sure = d.lo(presences_[i]) == 1;
    const Value last = d.hi(times_[i]);
    for (std::size_t k = steps_.size(); k-- > 0;) {
      if (steps_[k].level - change >= limit || (is_sure && steps_[k].time >= last)) continue;
      const bool is_final = k + 1 == steps_.size();
      if (!is_sure) return (!is_final && steps_[k + 1].time <= last) || d.assign(presences_[i], 0);
      return d.set_lo(times_[i], is_final ? last : std::min(last, steps_[k + 1].time));
    }
    return true;
  }

  Views times_, presences_;
  Values changes_;
  Value least_, capacity_;
  std::vector<Step> steps_;
};

}  // namespace

// Posts events that keep a level within limits. The level begins at 0. Arguments: times of events; the change of the
// level at each event; presences; the least and the greatest level.
void post_reservoir(ConstraintCall& call) {
  call.same_length(0, 1);
  call.same_length(0, 2);
  Values changes = call.values(1);
  __int128 total = 0;
  for (const Value change : changes) total += std::abs(change);
  if (total > kLimit) call.refuse("the changes of the level are beyond 2^52 together");
  call.engine().post(
      std::make_unique<Reservoir>(call.views(0), std::move(changes), call.booleans(2), call.value(3), call.value(4)));
}

}  // namespace elimina::cp
