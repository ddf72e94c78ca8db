// Propagators, their subscriptions, and the queue that brings them to a fixpoint.
#pragma once
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "domains.hpp"

namespace elimina::cp {

class Engine;

// Outcome of a propagator's call. `fixpoint`: another call would change nothing; `again`: another call may change
// something; `entailed`: the constraint holds for all remaining values below this node; `settled`: `begin` and `settle`
// have processed this propagator and those that it took from the queue.
enum class Outcome { failed, fixpoint, again, entailed, settled };

// Priorities by the cost of a call: cheap propagators run first.
enum class Priority : std::uint8_t { binary, ternary, linear, quadratic, costly };
inline constexpr std::size_t kPriorities = 5;

class Propagator {
 public:
  virtual ~Propagator() = default;
  // Subscribes to events of variables, and reserves trailed words.
  virtual void attach(Engine& engine) = 0;
  virtual Outcome propagate(Engine& engine) = 0;

  // Positions of the subscriptions with an event since the last call, each once.
  std::vector<int> touched;

 protected:
  explicit Propagator(Priority priority) : priority_(priority) {}

 private:
  friend class Engine;
  void forget_touched() {
    for (const int i : touched) is_touched_[static_cast<std::size_t>(i)] = 0;
    touched.clear();
  }

  std::vector<std::uint8_t> is_touched_;
  std::vector<int> scope_;
  double weight_ = 1;  // 1, plus the weights of the propagator's failures
  Priority priority_;
  bool waiting_ = false, active_ = true;
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Trail& trail() { return trail_; }
  const Trail& trail() const { return trail_; }
  Domains& domains() { return domains_; }
  const Domains& domains() const { return domains_; }

  int new_variable(Value lo, Value hi);

  // Attaches a propagator and schedules its first call. Call it at the root.
  void post(std::unique_ptr<Propagator> propagator);

  // Schedules the propagator at each event of a variable. Call it in `attach`: failures of the propagator do not count
  // for dom/wdeg of variables that it subscribes to later. A position of 0 or more is put into `touched` now and at
  // each event.
  void subscribe(Propagator& propagator, View x, Events events, int position = -1);

  void schedule(Propagator& propagator);

  // Runs propagators to a fixpoint; returns false if infeasible or stopped.
  [[nodiscard]] bool propagate();

  // Sets a function that is called now and then during propagation; if it returns false, propagation stops and fails.
  void watch(std::function<bool()> watcher) { watcher_ = std::move(watcher); }
  bool stopped() const { return stopped_; }

  void mark();
  void undo();
  std::size_t level() const { return trail_.level(); }

  // The urgency of a variable, if `weigh` has set it; otherwise the number of its constraints plus the weights of their
  // failures. After `weigh_active`, only constraints that are not entailed count (Boussemart et al., 2004). Keeping
  // track of these takes up to a fifth of the time of a search.
  double weight(int v) const { return urgencies_[v] < 0 ? weights_[v] : urgencies_[v]; }
  void weigh_active();
  // Multiplies the weight of further failures by `growth` after each failure, so that old failures fade.
  void age_weights(double growth) { growth_ = growth; }
  // Sets whether failures from now on add to weights.
  void count_failures(bool counts) { counts_failures_ = counts; }
  // Sets the urgency of a variable's decision, 0 or more, which replaces its weight.
  void weigh(View x, double urgency) { urgencies_[x.var] = urgency; }
  int degree(int v) const { return degrees_[v]; }
  std::uint64_t calls() const { return calls_; }

  // Used by a propagator that batches calls of others with its own. `take_waiting` removes the waiting propagators that
  // `accept` selects from the queue; `begin` begins a propagator's call; `run_as` names the propagator to blame for
  // failures; `forget` clears a propagator's events; `settle` reports a propagator's changes to the others, and to
  // itself if it has to be called again.
  void take_waiting(Priority priority, const std::function<bool(Propagator&)>& accept);
  void begin(Propagator& propagator);
  void run_as(Propagator& propagator) { running_ = &propagator; }
  void forget(Propagator& propagator) { propagator.forget_touched(); }
  void settle(Propagator& propagator, bool again) { notify(again ? nullptr : &propagator); }

  std::size_t propagators() const { return propagators_.size(); }
  template <class F>
  void each_propagator(F f) {
    for (const auto& p : propagators_) f(*p);
  }

 private:
  struct Subscription {
    Propagator* propagator;
    std::int32_t position;
    Events events;
  };
  // A first-in, first-out queue. Items before `next` are erased only once it is empty, which happens often.
  struct Line {
    std::vector<Propagator*> items;
    std::size_t next = 0;
  };

  void wake(const std::vector<Subscription>& list, Events events, const Propagator* without);
  void notify(const Propagator* without);
  Propagator* pop();
  void fail();
  bool may_go_on();
  void retire(Propagator& propagator);
  void weigh_failure();
  void rescale_weights();
  void lighten(const Propagator& propagator, double sign);

  Trail trail_;
  Domains domains_{trail_};
  std::vector<std::unique_ptr<Propagator>> propagators_;
  // Subscribers of each variable in three lists: to fixing, to changes of bounds, to any change.
  std::vector<std::array<std::vector<Subscription>, 3>> waiting_;
  std::array<Line, kPriorities> lines_;
  std::uint32_t nonempty_ = 0;
  std::vector<Propagator*> entailed_;
  const Propagator* attaching_ = nullptr;
  std::vector<std::size_t> marks_;
  double failure_weight_ = 1, growth_ = 1;
  std::vector<double> weights_, urgencies_;  // of each variable; an urgency below 0 is not set
  std::vector<int> degrees_;
  std::uint64_t calls_ = 0;
  Propagator* running_ = nullptr;
  std::function<bool()> watcher_;
  std::chrono::steady_clock::time_point next_look_{};
  bool stopped_ = false, is_weighed_ = false, counts_failures_ = true;
};

}  // namespace elimina::cp
