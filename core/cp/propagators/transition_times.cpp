// Transition times between the tasks of a list, which run one after another.
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

class TransitionTimes final : public Propagator {
 public:
  TransitionTimes(Views starts, Views durations, Views presences, Values times)
      : Propagator(Priority::quadratic), starts_(std::move(starts)), durations_(std::move(durations)),
        presences_(std::move(presences)), times_(std::move(times)) {}

  void attach(Engine& engine) override {
    for (std::size_t i = 0; i < starts_.size(); ++i)
      for (const View x : {starts_[i], durations_[i], presences_[i]})
        engine.subscribe(*this, x, kBounds, static_cast<int>(i));
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const int i : touched)
      for (std::size_t k = 0; k < starts_.size(); ++k)
        if (k != static_cast<std::size_t>(i) && !separate(d, static_cast<std::size_t>(i), k)) return Outcome::failed;
    return Outcome::again;
  }

 private:
  Value time(std::size_t i, std::size_t k) const { return times_[i * starts_.size() + k]; }

  bool separate(Domains& d, std::size_t i, std::size_t k) {
    if (d.hi(presences_[i]) == 0 || d.hi(presences_[k]) == 0) return true;
    const bool is_before = may_precede(d, i, k), is_after = may_precede(d, k, i);
    if (is_before && is_after) return true;
    const bool is_sure = d.lo(presences_[i]) == 1, is_other_sure = d.lo(presences_[k]) == 1;
    if (!is_before && !is_after) {
      if (is_sure) return d.assign(presences_[k], 0);
      return !is_other_sure || d.assign(presences_[i], 0);
    }
    if (!is_sure || !is_other_sure) return true;
    return is_before ? order(d, i, k) : order(d, k, i);
  }

  bool may_precede(const Domains& d, std::size_t i, std::size_t k) const {
    return d.lo(starts_[i]) + d.lo(durations_[i]) + time(i, k) <= d.hi(starts_[k]);
  }

  bool order(Domains& d, std::size_t i, std::size_t k) const {
    return d.set_lo(starts_[k], d.lo(starts_[i]) + d.lo(durations_[i]) + time(i, k)) &&
           d.set_hi(starts_[i], d.hi(starts_[k]) - d.lo(durations_[i]) - time(i, k)) &&
           d.set_hi(durations_[i], d.hi(starts_[k]) - d.lo(starts_[i]) - time(i, k));
  }

  Views starts_, durations_, presences_;
  Values times_;
};

}  // namespace

// Posts tasks with times between them. Arguments: starts, durations, presences; the matrix of the times from each task
// to each task, row by row.
void post_transition_times(ConstraintCall& call) {
  call.same_length(0, 1);
  call.same_length(0, 2);
  Values times = call.values(3);
  if (times.size() != call.length(0) * call.length(0)) call.refuse("there is a time from each task to each task");
  for (const Value time : times)
    if (time < 0 || time > kLimit) call.refuse("a time between tasks is from 0 to 2^52, not " + std::to_string(time));
  call.engine().post(
      std::make_unique<TransitionTimes>(call.views(0), call.views(1), call.booleans(2), std::move(times)));
}

}  // namespace elimina::cp
