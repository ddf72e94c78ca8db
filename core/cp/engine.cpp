#include "engine.hpp"

#include <algorithm>
#include <bit>

namespace elimina::cp {

namespace {

// Once the weight of a failure is above this, all weights are scaled down, before sums of weights lose precision.
constexpr double kHeaviestFailure = 1e9;

}  // namespace

int Engine::new_variable(Value lo, Value hi) {
  waiting_.emplace_back();
  weights_.push_back(0);
  urgencies_.push_back(-1);
  degrees_.push_back(0);
  return domains_.make(lo, hi);
}

void Engine::post(std::unique_ptr<Propagator> propagator) {
  Propagator& p = *propagator;
  propagators_.push_back(std::move(propagator));
  attaching_ = &p;
  p.attach(*this);
  attaching_ = nullptr;
  std::sort(p.scope_.begin(), p.scope_.end());
  p.scope_.erase(std::unique(p.scope_.begin(), p.scope_.end()), p.scope_.end());
  for (const int v : p.scope_) {
    weights_[v] += 1;
    ++degrees_[v];
  }
  schedule(p);
}

void Engine::subscribe(Propagator& propagator, View x, Events events, int position) {
  if (position >= 0) {
    const auto i = static_cast<std::size_t>(position);
    if (propagator.is_touched_.size() <= i) propagator.is_touched_.resize(i + 1, 0);
    if (!propagator.is_touched_[i]) propagator.touched.push_back(position);
    propagator.is_touched_[i] = 1;
  }
  if (domains_.fixed(x)) return;
  if (&propagator == attaching_) propagator.scope_.push_back(x.var);
  if (x.scale < 0) {
    const bool lower = events & kLower, upper = events & kUpper;
    events = static_cast<Events>((events & ~kBounds) | (upper ? kLower : 0) | (lower ? kUpper : 0));
  }
  auto& lists = waiting_[x.var];
  lists[events & kDomain ? 2 : events & kBounds ? 1 : 0].push_back({&propagator, position, events});
}

void Engine::schedule(Propagator& propagator) {
  if (propagator.waiting_ || !propagator.active_) return;
  propagator.waiting_ = true;
  const auto i = static_cast<std::size_t>(propagator.priority_);
  lines_[i].items.push_back(&propagator);
  nonempty_ |= 1U << i;
}

void Engine::wake(const std::vector<Subscription>& list, Events events, const Propagator* without) {
  for (const Subscription& s : list) {
    if (!(s.events & events) || s.propagator == without) continue;
    Propagator& p = *s.propagator;
    if (!p.active_) continue;
    if (s.position >= 0 && !p.is_touched_[static_cast<std::size_t>(s.position)]) {
      p.is_touched_[static_cast<std::size_t>(s.position)] = 1;
      p.touched.push_back(s.position);
    }
    schedule(p);
  }
}

void Engine::notify(const Propagator* without) {
  // Data are prefetched this many iterations before they are read: lists may have thousands of variables.
  constexpr std::size_t kFar = 16, kNear = 8;
  const std::span<const int> changed = domains_.changed();
  for (std::size_t k = 0; k < changed.size(); ++k) {
    if (k + kFar < changed.size()) __builtin_prefetch(&waiting_[changed[k + kFar]][2]);
    if (k + kNear < changed.size()) __builtin_prefetch(waiting_[changed[k + kNear]][2].data());
    const int v = changed[k];
    const Events events = domains_.events(v);
    const auto& lists = waiting_[v];
    if (events & kFix) wake(lists[0], events, without);
    if (events & kBounds) wake(lists[1], events, without);
    wake(lists[2], events, without);
  }
  domains_.forget();
}

Propagator* Engine::pop() {
  const int i = std::countr_zero(nonempty_);
  Line& line = lines_[static_cast<std::size_t>(i)];
  Propagator* p = line.items[line.next++];
  if (line.next == line.items.size()) {
    line.items.clear();
    line.next = 0;
    nonempty_ &= ~(1U << i);
  }
  p->waiting_ = false;
  return p;
}

void Engine::take_waiting(Priority priority, const std::function<bool(Propagator&)>& accept) {
  const auto i = static_cast<std::size_t>(priority);
  Line& line = lines_[i];
  const auto first = line.items.begin() + static_cast<std::ptrdiff_t>(line.next);
  const auto last = std::remove_if(first, line.items.end(), [&](Propagator* p) {
    if (!accept(*p)) return false;
    p->waiting_ = false;
    ++calls_;
    return true;
  });
  line.items.erase(last, line.items.end());
  if (line.next < line.items.size()) return;
  line.items.clear();
  line.next = 0;
  nonempty_ &= ~(1U << i);
}

void Engine::begin(Propagator& propagator) {
  running_ = &propagator;
  propagator.forget_touched();
}

void Engine::fail() {
  if (counts_failures_) weigh_failure();
  running_->forget_touched();
  while (nonempty_) pop()->forget_touched();
  domains_.forget();
}

void Engine::weigh_failure() {
  for (const int v : running_->scope_) weights_[v] += failure_weight_;
  running_->weight_ += failure_weight_;
  failure_weight_ *= growth_;
  if (failure_weight_ > kHeaviestFailure) rescale_weights();
}

void Engine::rescale_weights() {
  const double scale = 1 / failure_weight_;
  failure_weight_ = 1;
  for (double& weight : weights_) weight *= scale;
  for (const auto& p : propagators_) p->weight_ *= scale;
}

void Engine::retire(Propagator& propagator) {
  propagator.active_ = false;
  entailed_.push_back(&propagator);
  if (is_weighed_) lighten(propagator, 1);
}

void Engine::lighten(const Propagator& propagator, double sign) {
  for (const int v : propagator.scope_) weights_[v] -= sign * propagator.weight_;
}

void Engine::weigh_active() {
  if (is_weighed_) return;
  is_weighed_ = true;
  for (const Propagator* p : entailed_) lighten(*p, 1);
}

bool Engine::may_go_on() {
  constexpr auto kPause = std::chrono::milliseconds(5);
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_) return true;
  next_look_ = now + kPause;
  return !watcher_ || watcher_();
}

bool Engine::propagate() {
  // The clock is checked only once for every 16 calls of propagators; some calls take milliseconds.
  constexpr std::uint64_t kPatience = 15;
  stopped_ = false;
  notify(nullptr);
  while (nonempty_) {
    Propagator* p = pop();
    if ((++calls_ & kPatience) == 0 && !may_go_on()) stopped_ = true;
    running_ = p;
    const Outcome outcome = stopped_ ? Outcome::failed : p->propagate(*this);
    if (outcome == Outcome::failed) {
      fail();
      return false;
    }
    if (outcome == Outcome::settled) continue;
    p->forget_touched();
    if (outcome == Outcome::entailed) retire(*p);
    notify(outcome == Outcome::again ? nullptr : p);
  }
  return true;
}

void Engine::mark() {
  marks_.push_back(entailed_.size());
  domains_.mark();
}

void Engine::undo() {
  for (std::size_t i = entailed_.size(); i-- > marks_.back();) {
    entailed_[i]->active_ = true;
    if (is_weighed_) lighten(*entailed_[i], -1);
  }
  entailed_.resize(marks_.back());
  marks_.pop_back();
  domains_.undo();
}

}  // namespace elimina::cp
