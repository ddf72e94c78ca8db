#include "task_neighbourhood.hpp"

#include <memory>
#include <utility>

namespace elimina::cp {

namespace {

Value value_in(const Values& solution, View x) {
  return x.var < 0 ? x.offset : x.scale * solution[static_cast<std::size_t>(x.var)] + x.offset;
}

}  // namespace

void PartialOrder::attach(Engine& engine) {
  for (const TaskGroup& group : groups_)
    for (const auto* views : {&group.starts, &group.durations})
      for (const View x : *views) engine.subscribe(*this, x, kBounds);
}

// Precedences are sorted by the second task. One pass forward and one back therefore reach the fixpoint, unless two
// views share a variable.
Outcome PartialOrder::propagate(Engine& engine) {
  Domains& d = engine.domains();
  for (const auto& [before, duration, after, key] : precedences_)
    if (!d.set_lo(after, d.lo(before) + d.lo(duration))) return Outcome::failed;
  for (std::size_t i = precedences_.size(); i-- > 0;) {
    const auto& [before, duration, after, key] = precedences_[i];
    if (!d.set_hi(before, d.hi(after) - d.lo(duration))) return Outcome::failed;
  }
  return Outcome::fixpoint;
}

TaskNeighbourhood::TaskNeighbourhood(Engine& engine, std::vector<TaskGroup> groups) : groups_(std::move(groups)) {
  auto order = std::make_unique<PartialOrder>(groups_);
  order_ = order.get();
  engine.post(std::move(order));
  is_released_.resize(static_cast<std::size_t>(engine.domains().count()), 0);
  refuted_.resize(is_released_.size(), kNone);
  for (const TaskGroup& group : groups_)
    for (const View x : group.starts)
      if (x.var >= 0 && !std::exchange(is_released_[static_cast<std::size_t>(x.var)], 1)) starts_.push_back(x);
}

void TaskNeighbourhood::release(const Values& best, Random& random) {
  std::fill(is_released_.begin(), is_released_.end(), 0);
  const std::size_t count = starts_.size();
  const std::size_t share =
      std::clamp<std::size_t>(static_cast<std::size_t>(released_ * static_cast<double>(count)), 2, count);
  Views order = starts_;
  std::size_t first = 0;
  if (random.below(3) > 0) {
    std::sort(order.begin(), order.end(), [&](View a, View b) {
      const Value x = value_in(best, a), y = value_in(best, b);
      return x != y ? x < y : a.var < b.var;
    });
    // Only one window contains the first task, and only one the last task, so these two windows are drawn more often.
    // The first and the last task are then released as often as those in the middle, and tasks near the ends up to
    // twice as often.
    const std::size_t places = count + share - 1, place = random.below(places);
    first = std::min(place < share ? 0 : place - share + 1, count - share);
  } else {
    for (std::size_t i = 0; i < share; ++i) std::swap(order[i], order[i + random.below(count - i)]);
  }
  for (std::size_t i = first; i < first + share; ++i) is_released_[static_cast<std::size_t>(order[i].var)] = 1;
}

// Gives units of the capacity to the tasks in the order of their starts. Precedences make each task follow the last
// tasks on its units.
void TaskNeighbourhood::chain(const TaskGroup& group, const Values& best) {
  struct Unit {
    Value end;
    std::size_t task;
    Value amount;
  };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < group.starts.size(); ++i) {
    const View start = group.starts[i];
    const bool is_kept = start.var < 0 || !is_released_[static_cast<std::size_t>(start.var)];
    if (is_kept && value_in(best, group.durations[i]) > 0 && value_in(best, group.demands[i]) > 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return value_in(best, group.starts[a]) < value_in(best, group.starts[b]);
  });
  constexpr std::size_t kNoTask = ~std::size_t{0};
  std::vector<Unit> units{{std::numeric_limits<Value>::min(), kNoTask, value_in(best, group.capacity)}};
  std::vector<Unit> following;
  for (const std::size_t i : order) {
    const Value start = value_in(best, group.starts[i]);
    Value missing = value_in(best, group.demands[i]);
    following.clear();
    // Units with the latest ends are taken first, so that units with earlier ends remain for other tasks.
    std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.end > b.end; });
    for (Unit& unit : units) {
      const Value used_amount = unit.end <= start ? std::min(unit.amount, missing) : 0;
      if (used_amount > 0 && unit.task != kNoTask)
        order_->precedences_.push_back({group.starts[unit.task], group.durations[unit.task], group.starts[i], start});
      missing -= used_amount;
      unit.amount -= used_amount;
      if (unit.amount > 0) following.push_back(unit);
    }
    following.push_back({start + value_in(best, group.durations[i]), i, value_in(best, group.demands[i])});
    std::swap(units, following);
  }
}

std::optional<Decision> TaskNeighbourhood::earliest(const Domains& d, Random& random) const {
  std::optional<Decision> result;
  Value least = 0, latest = 0;
  std::uint64_t ties = 1;
  for (const View x : starts_) {
    if (d.fixed(x)) continue;
    const Value lo = d.lo(x), hi = d.hi(x), refuted = refuted_[static_cast<std::size_t>(x.var)];
    if (refuted != kNone && lo == refuted + 1) continue;
    const bool is_tie = result && lo == least && hi == latest;
    if (result && !is_tie && (lo > least || (lo == least && hi > latest))) continue;
    ties = is_tie ? ties + 1 : 1;
    if (is_tie && random.below(ties) > 0) continue;
    least = lo;
    latest = hi;
    result = Decision{x, Test::is, lo};
  }
  return result;
}

bool TaskNeighbourhood::is_open(const Domains& d) const {
  return std::any_of(starts_.begin(), starts_.end(), [&](View x) { return !d.fixed(x); });
}

void TaskNeighbourhood::fix(Engine& engine, const Values& best, Random& random) {
  release(best, random);
  order_->precedences_.clear();
  for (const TaskGroup& group : groups_) chain(group, best);
  std::stable_sort(order_->precedences_.begin(), order_->precedences_.end(),
                   [](const auto& a, const auto& b) { return a.key < b.key; });
  engine.schedule(*order_);
}

}  // namespace elimina::cp
