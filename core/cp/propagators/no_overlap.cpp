// Tasks that run one after another and may be absent: overload checking, detectable precedences, not-first and
// not-last, edge finding (Vilim, PhD thesis 2007; with absent tasks: Vilim, Bartak and Cepek, Constraints 10, 2005).
#include <algorithm>
#include <memory>
#include <utility>

#include "cp/constraint_call.hpp"
#include "theta_tree.hpp"

namespace elimina::cp {

namespace {

class NoOverlap final : public Propagator {
 public:
  NoOverlap(Views starts, Views durations, Views presences, bool is_strict)
      : Propagator(Priority::costly), starts_(std::move(starts)), durations_(std::move(durations)),
        presences_(std::move(presences)), is_strict_(is_strict) {}

  void attach(Engine& engine) override {
    Views views;
    for (const auto* listed : {&starts_, &durations_, &presences_})
      for (const View x : *listed) {
        if (!engine.domains().fixed(x)) views.push_back(x);
        engine.subscribe(*this, x, kBounds);
      }
    repeats_ = repeats(views);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const View x : durations_)
      if (!d.set_lo(x, 0)) return Outcome::failed;
    bool is_fixed = true;
    if (!gather(d, is_fixed)) return Outcome::failed;
    if (tasks_.size() < 2) return is_fixed ? Outcome::entailed : Outcome::fixpoint;
    do {
      changed_ = false;
      if (!check_overload(d) || !in_both_directions(d, &NoOverlap::detect_precedences) ||
          !in_both_directions(d, &NoOverlap::find_not_last))
        return Outcome::failed;
      if (!changed_ && !is_fixed && !in_both_directions(d, &NoOverlap::find_edges)) return Outcome::failed;
    } while (changed_);
    if (!is_fixed && !shrink_durations(d)) return Outcome::failed;
    if (is_fixed) return Outcome::entailed;
    return repeats_ ? Outcome::again : Outcome::fixpoint;
  }

 private:
  // Window of a task in the current direction of time. If the task is optional, the window holds only if it is present.
  struct Task {
    std::size_t number;
    Value start, end, duration;
    bool is_optional, is_absent;
    Value earliest_end() const { return start + duration; }
    Value latest_start() const { return end - duration; }
  };

  // Lists the tasks that may be present; returns false if the present ones do not fit between the first start and the
  // last end.
  bool gather(const Domains& d, bool& is_fixed) {
    tasks_.clear();
    is_mirrored_ = false;
    __int128 total = 0;
    Value first = kLimit, last = -2 * kLimit;
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      if (d.hi(presences_[i]) == 0) continue;
      const bool is_optional = d.lo(presences_[i]) == 0;
      is_fixed = is_fixed && !is_optional && d.fixed(starts_[i]) && d.fixed(durations_[i]);
      const Value duration = d.lo(durations_[i]);
      if (duration == 0 && !is_strict_) continue;
      tasks_.push_back({i, d.lo(starts_[i]), d.hi(starts_[i]) + duration, duration, is_optional, false});
      if (is_optional) continue;
      total += duration;
      first = std::min(first, tasks_.back().start);
      last = std::max(last, tasks_.back().end);
    }
    return total == 0 || total <= last - first;
  }

  using Rule = bool (NoOverlap::*)(Domains&);
  bool in_both_directions(Domains& d, Rule rule) {
    for (int direction = 0; direction < 2; ++direction) {
      if (!(this->*rule)(d)) return false;
      mirror();
    }
    return true;
  }

  void mirror() {
    is_mirrored_ = !is_mirrored_;
    for (Task& task : tasks_) {
      const Value start = task.start;
      task.start = -task.end;
      task.end = -start;
    }
  }

  // Assigns each task a place in the tree by its start, and empties the tree.
  void place() {
    order(by_start_, [this](std::size_t i) { return tasks_[i].start; });
    places_.resize(tasks_.size());
    for (std::size_t p = 0; p < by_start_.size(); ++p) places_[by_start_[p]] = p;
    tree_.reset(tasks_.size());
    bounds_.clear();
    for (const Task& task : tasks_) bounds_.push_back(task.start);
  }

  template <class F>
  void order(std::vector<std::size_t>& list, F time) const {
    list.resize(tasks_.size());
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = i;
    std::sort(list.begin(), list.end(), [&](std::size_t a, std::size_t b) { return time(a) < time(b); });
  }
  void order_by_end() {
    order(by_end_, [this](std::size_t i) { return tasks_[i].end; });
  }
  void order_by_latest_start() {
    order(by_latest_start_, [this](std::size_t i) { return tasks_[i].latest_start(); });
  }

  void insert(std::size_t i) { tree_.insert(places_[i], tasks_[i].start, tasks_[i].duration); }
  void insert_candidate(std::size_t i) { tree_.insert_candidate(places_[i], tasks_[i].start, tasks_[i].duration); }
  std::size_t candidate() const { return by_start_[tree_.candidate()]; }

  bool make_absent(Domains& d, std::size_t i) {
    changed_ = tasks_[i].is_absent = true;
    return d.assign(presences_[tasks_[i].number], 0);
  }

  bool update_start(Domains& d, std::size_t i, Value start) {
    Task& task = tasks_[i];
    if (start <= task.start || task.is_absent) return true;
    changed_ = true;
    if (task.is_optional) {
      task.start = start;
      return start <= task.latest_start() || make_absent(d, i);
    }
    const View x = starts_[task.number];
    if (!(is_mirrored_ ? d.set_hi(x, -start - task.duration) : d.set_lo(x, start))) return false;
    task.start = is_mirrored_ ? -d.hi(x) - task.duration : d.lo(x);
    return true;
  }
  bool update_end(Domains& d, std::size_t i, Value end) {
    mirror_task(i);
    const bool is_possible = update_start(d, i, -end);
    mirror_task(i);
    return is_possible;
  }
  void mirror_task(std::size_t i) {
    is_mirrored_ = !is_mirrored_;
    Task& task = tasks_[i];
    const Value start = task.start;
    task.start = -task.end;
    task.end = -start;
  }

  bool update_starts(Domains& d) {
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (!update_start(d, i, bounds_[i])) return false;
    return erase_absent();
  }
  bool erase_absent() {
    std::erase_if(tasks_, [](const Task& task) { return task.is_absent; });
    return true;
  }

  // Checks for overload: all tasks that end by a time have to fit before it. If they do not fit together with one
  // optional task, this task is absent.
  bool check_overload(Domains& d) {
    place();
    order_by_end();
    for (const std::size_t i : by_end_) {
      const Value end = tasks_[i].end;
      if (tasks_[i].is_optional) insert_candidate(i);
      else insert(i);
      if (tree_.completion() > end) return false;
      while (tree_.completion_with_candidate() > end) {
        const std::size_t absent = candidate();
        if (!make_absent(d, absent)) return false;
        tree_.remove(places_[absent]);
      }
    }
    return erase_absent();
  }

  // Finds detectable precedences: a task that cannot precede some others begins after all these others are complete.
  bool detect_precedences(Domains& d) {
    place();
    order(by_earliest_end_, [this](std::size_t i) { return tasks_[i].earliest_end(); });
    order_by_latest_start();
    std::size_t k = 0;
    for (const std::size_t i : by_earliest_end_) {
      for (; k < by_latest_start_.size(); ++k) {
        const Task& other = tasks_[by_latest_start_[k]];
        if (tasks_[i].earliest_end() <= other.latest_start()) break;
        if (!other.is_optional) insert(by_latest_start_[k]);
      }
      bounds_[i] = std::max(bounds_[i], completion_without(i));
    }
    return update_starts(d);
  }

  Value completion_without(std::size_t i) {
    const bool is_inside = tree_.has(places_[i]);
    if (is_inside) tree_.remove(places_[i]);
    const Value result = tree_.completion();
    if (is_inside) insert(i);
    return result;
  }

  // Finds tasks that are not last: if the latest start of a task is before the completion of some others, the task is
  // not the last one of them.
  bool find_not_last(Domains& d) {
    place();
    order_by_end();
    order_by_latest_start();
    for (std::size_t i = 0; i < tasks_.size(); ++i) bounds_[i] = tasks_[i].end;
    constexpr std::size_t kNone = ~std::size_t{0};
    std::size_t k = 0, last = kNone, before_last = kNone;
    for (const std::size_t i : by_end_) {
      for (; k < by_latest_start_.size() && tasks_[by_latest_start_[k]].latest_start() < tasks_[i].end; ++k) {
        if (tasks_[by_latest_start_[k]].is_optional) continue;
        insert(by_latest_start_[k]);
        before_last = std::exchange(last, by_latest_start_[k]);
      }
      if (completion_without(i) <= tasks_[i].latest_start()) continue;
      bounds_[i] = tasks_[last != i ? last : before_last].latest_start();
    }
    for (std::size_t i = 0; i < tasks_.size(); ++i)
      if (!update_end(d, i, bounds_[i])) return false;
    return erase_absent();
  }

  // Finds edges: if a task does not fit together with some others before the latest end of these others, it begins
  // after they are complete.
  bool find_edges(Domains& d) {
    place();
    order_by_end();
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].is_optional) insert_candidate(i);
      else insert(i);
    }
    for (std::size_t k = tasks_.size(); k-- > 0;) {
      const std::size_t last = by_end_[k];
      const Value end = tasks_[last].end;
      if (tasks_[last].is_optional) continue;
      while (tree_.completion_with_candidate() > end) {
        if (tree_.completion() > end) return false;
        const std::size_t i = candidate();
        if (tasks_[i].is_optional && tasks_[i].end <= end) {
          if (!make_absent(d, i)) return false;
        } else bounds_[i] = std::max(bounds_[i], tree_.completion());
        tree_.remove(places_[i]);
      }
      insert_candidate(last);
    }
    return update_starts(d);
  }

  // Limits the durations of tasks: if a task cannot come after another one, it must end before the other one begins.
  bool shrink_durations(Domains& d) const {
    for (std::size_t i = 0; i < starts_.size(); ++i) {
      if (d.fixed(durations_[i]) || d.lo(presences_[i]) == 0) continue;
      Value greatest = d.hi(durations_[i]);
      for (std::size_t k = 0; k < starts_.size(); ++k) {
        const Value duration = d.lo(durations_[k]);
        if (k == i || d.lo(presences_[k]) == 0 || (duration == 0 && !is_strict_)) continue;
        if (d.lo(starts_[k]) + duration > d.hi(starts_[i]))
          greatest = std::min(greatest, d.hi(starts_[k]) - d.lo(starts_[i]));
      }
      if (!d.set_hi(durations_[i], is_strict_ ? greatest : std::max<Value>(greatest, 0))) return false;
    }
    return true;
  }

  Views starts_, durations_, presences_;
  bool is_strict_, is_mirrored_ = false, changed_ = false, repeats_ = false;
  std::vector<Task> tasks_;
  std::vector<std::size_t> by_start_, by_end_, by_earliest_end_, by_latest_start_, places_;
  Values bounds_;
  ThetaTree tree_;
};

void post(ConstraintCall& call, bool is_strict) {
  call.same_length(0, 1);
  call.same_length(0, 2);
  const Views starts = call.views(0), durations = call.views(1);
  call.engine().post(std::make_unique<NoOverlap>(starts, durations, call.booleans(2), is_strict));
  call.add_tasks({starts, durations, call.booleans(2), call.fixed(1)});
  const bool occur_all = call.is_constant(2) && std::ranges::all_of(call.values(2), [](Value x) { return x == 1; });
  if (occur_all && call.is_constant(1)) post_task_orders(call, starts, durations);
}

}  // namespace

// Post that tasks run one after another. Arguments: starts, durations, presences. Tasks that take no time overlap
// nothing; in the strict form, none of them begins while another task runs.
void post_optional_no_overlap(ConstraintCall& call) { post(call, false); }
void post_strict_no_overlap(ConstraintCall& call) { post(call, true); }

void post_no_overlap(Engine& engine, const Views& starts, const Views& durations, const Views& presences) {
  engine.post(std::make_unique<NoOverlap>(starts, durations, presences, false));
}

}  // namespace elimina::cp
