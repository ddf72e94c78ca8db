// Neighbourhoods of schedules. Tasks that a neighbourhood does not release keep their order on each resource, but not
// their starts (partial order schedules: Policella, Smith, Cesta and Oddi, ICAPS 2004; in large neighbourhood search:
// Godard, Laborie and Nuijten, ICAPS 2005).
#pragma once
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "branching.hpp"

namespace elimina::cp {

// Tasks that share a capacity.
struct TaskGroup {
  Views starts, durations, demands;
  View capacity;
};

// Propagator of precedences, which hold until a `TaskNeighbourhood` replaces them.
class PartialOrder final : public Propagator {
 public:
  explicit PartialOrder(const std::vector<TaskGroup>& groups) : Propagator(Priority::linear), groups_(groups) {}

  void attach(Engine& engine) override;
  Outcome propagate(Engine& engine) override;

 private:
  friend class TaskNeighbourhood;
  struct Precedence {
    View before, duration, after;
    Value key;  // start of the second task in the incumbent
  };

  const std::vector<TaskGroup>& groups_;
  std::vector<Precedence> precedences_;
};

class TaskNeighbourhood {
 public:
  // Posts the propagator that keeps the order of tasks.
  TaskNeighbourhood(Engine& engine, std::vector<TaskGroup> groups);

  // Keeps the order that tasks have in `best`, except tasks of a random window of time, or of a random set.
  void fix(Engine& engine, const Values& best, Random& random);
  void clear() { order_->precedences_.clear(); }

  // Returns the decision for the task with the earliest start among those without a fixed start. A task is postponed
  // while the value just below its earliest start is a refuted one (Le Pape and others, 1994). Returns nullopt if all
  // are postponed.
  std::optional<Decision> earliest(const Domains& d, Random& random) const;
  bool is_open(const Domains& d) const;
  void postpone(View start, Value refuted) { refuted_[static_cast<std::size_t>(start.var)] = refuted; }
  void forget(View start) { refuted_[static_cast<std::size_t>(start.var)] = kNone; }

  void widen() { released_ = std::min(released_ * 1.1, 1.0); }
  void narrow() { released_ = std::max(released_ * 0.95, 0.02); }

 private:
  static constexpr Value kNone = std::numeric_limits<Value>::min();

  void release(const Values& best, Random& random);
  void chain(const TaskGroup& group, const Values& best);

  std::vector<TaskGroup> groups_;
  PartialOrder* order_;
  Views starts_;                   // starts of all groups' tasks, each variable once
  std::vector<char> is_released_;  // for each variable, true if it is the start of a released task
  Values refuted_;                 // refuted start of each variable, or kNone
  double released_ = 0.3;          // share of the tasks that a neighbourhood releases
};

}  // namespace elimina::cp
