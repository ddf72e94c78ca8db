#include "exclusive_tasks.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <unordered_map>

#include "constraints.hpp"
#include "solver.hpp"

namespace elimina::cp {

namespace {

// With more tasks than this, the longest paths of precedences take too long to compute.
constexpr std::size_t kMaxTasks = 200;
// Largest number of cliques that get a constraint: the longest clique gives the bound, and each further one slows the
// search.
constexpr std::size_t kMaxCliques = 2;
// Largest number of steps of the search for the longest clique; they take some milliseconds in total.
constexpr std::size_t kMaxSteps = 20000;

struct Task {
  View start, duration;
  Value length;
};

using Bits = std::vector<std::uint64_t>;
using Clique = std::vector<std::size_t>;

bool has(const Bits& bits, std::size_t i) { return bits[i / 64] >> (i % 64) & 1; }
void add(Bits& bits, std::size_t i) { bits[i / 64] |= std::uint64_t{1} << (i % 64); }

class ExclusionGraph {
 public:
  explicit ExclusionGraph(const Solver& solver) : solver_(solver), d_(solver.domains()) {
    for (const TaskGroup& group : solver.task_groups()) add_tasks(group);
    if (tasks_.size() > kMaxTasks) return;
    exclusive_.assign(tasks_.size(), Bits((tasks_.size() + 63) / 64, 0));
    ordered_ = exclusive_;
    for (const TaskGroup& group : solver.task_groups()) add_resource(group);
    add_precedences();
  }

  const std::vector<Task>& tasks() const { return tasks_; }

  // Returns the longest cliques found. Some cliques are left out, because a constraint on them would add nothing: those
  // with fewer than three tasks, those on one resource whose tasks exclude each other, and those already in order by
  // precedences.
  std::vector<Clique> cliques() {
    std::vector<Clique> result;
    // No cliques are needed if every resource runs its tasks one after another, as in job shops: searches then decide
    // the orders of tasks.
    if (tasks_.size() > kMaxTasks || unary_.size() == solver_.task_groups().size()) return result;
    for (std::size_t seed = 0; seed < tasks_.size(); ++seed) result.push_back(grow(seed));
    std::sort(result.begin(), result.end(), [&](const Clique& a, const Clique& b) {
      const Value x = length(a), y = length(b);
      return x != y ? x > y : a < b;
    });
    if (!result.empty()) {
      best_ = result.front();
      best_length_ = length(best_);
      Clique clique, open(tasks_.size());
      for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
      std::sort(open.begin(), open.end(),
                [&](std::size_t a, std::size_t b) { return tasks_[a].length > tasks_[b].length; });
      extend(clique, 0, open);
      std::sort(best_.begin(), best_.end());
      result.insert(result.begin(), best_);
    }
    result.erase(std::unique(result.begin(), result.end()), result.end());
    std::erase_if(result, [&](const Clique& clique) {
      return clique.size() < 3 || is_of_one_resource(clique) || is_chain(clique);
    });
    return result;
  }

 private:
  void add_tasks(const TaskGroup& group) {
    for (std::size_t i = 0; i < group.starts.size(); ++i) {
      if (!takes_time(group, i)) continue;
      const View start = group.starts[i], duration = group.durations[i];
      const Value length = d_.lo(duration);
      const auto [place, is_new] = numbers_.try_emplace(start.var, tasks_.size());
      if (is_new) tasks_.push_back({start, duration, length});
      Task& task = tasks_[place->second];
      // A variable may be the start of a task with several durations. If all are fixed, the least one counts; if one is
      // not fixed, or if the starts have different offsets, the task does not count.
      const bool is_same = duration.var == task.duration.var && duration.offset == task.duration.offset &&
                           duration.scale == task.duration.scale && start.offset == task.start.offset;
      if (is_same) continue;
      if (start.offset != task.start.offset || !d_.fixed(duration) || !d_.fixed(task.duration)) task.length = 0;
      else if (length < task.length) task = {start, duration, length};
    }
  }

  // False for a task whose duration may be 0, because it excludes no other task for certain. Also false for a start
  // that is not a view with the scale 1: its variable may be the start of another task, too, and each variable has only
  // one task number.
  bool takes_time(const TaskGroup& group, std::size_t i) const {
    return group.starts[i].scale == 1 && d_.lo(group.durations[i]) > 0;
  }

  std::size_t number_of(View start) const {
    const auto entry = numbers_.find(start.var);
    return entry == numbers_.end() || tasks_[entry->second].length == 0 ? tasks_.size() : entry->second;
  }

  void exclude(std::size_t a, std::size_t b) {
    add(exclusive_[a], b);
    add(exclusive_[b], a);
  }

  void add_resource(const TaskGroup& group) {
    const Value capacity = d_.hi(group.capacity);
    Bits members((tasks_.size() + 63) / 64, 0);
    bool is_unary = true;
    for (std::size_t i = 0; i < group.starts.size(); ++i) {
      const std::size_t a = number_of(group.starts[i]);
      if (a == tasks_.size() || !takes_time(group, i) || d_.lo(group.demands[i]) <= 0) continue;
      add(members, a);
      for (std::size_t k = 0; k < i; ++k) {
        const std::size_t b = number_of(group.starts[k]);
        if (b == tasks_.size() || b == a || !takes_time(group, k) || d_.lo(group.demands[k]) <= 0) continue;
        if (d_.lo(group.demands[i]) > capacity - d_.lo(group.demands[k])) exclude(a, b);
        else is_unary = false;
      }
    }
    if (is_unary) unary_.push_back(std::move(members));
  }

  void add_precedences() {
    constexpr Value kNone = std::numeric_limits<Value>::min() / 4, kLongest = 4 * kLimit;
    const std::size_t n = tasks_.size();
    std::vector<Value> distances(n * n, kNone);
    for (const auto& [before, distance, after] : solver_.differences()) {
      const std::size_t a = number_of({before}), b = number_of({after});
      if (a == n || b == n || a == b) continue;
      Value& longest = distances[a * n + b];
      longest = std::max(longest, distance - tasks_[a].start.offset + tasks_[b].start.offset);
    }
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i) {
        const Value first = distances[i * n + k];
        if (first == kNone) continue;
        for (std::size_t j = 0; j < n; ++j)
          if (const Value second = distances[k * n + j]; second != kNone)
            distances[i * n + j] = std::max(distances[i * n + j], std::min(first + second, kLongest));
      }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j)
        if (i != j && tasks_[i].length > 0 && distances[i * n + j] >= tasks_[i].length &&
            d_.fixed(tasks_[i].duration)) {
          exclude(i, j);
          add(ordered_[i], j);
          add(ordered_[j], i);
        }
  }

  Value length(const Clique& clique) const {
    Value sum = 0;
    for (const std::size_t i : clique) sum += tasks_[i].length;
    return sum;
  }

  // Grows a clique from one task. Each step adds a candidate: the one that maximises the total length of itself and the
  // candidates after this step. Ends when no candidate remains.
  Clique grow(std::size_t seed) const {
    Clique result{seed};
    Bits candidates = exclusive_[seed];
    for (;;) {
      std::size_t best = tasks_.size();
      Value largest = -1;
      for (std::size_t i = 0; i < tasks_.size(); ++i) {
        if (!has(candidates, i)) continue;
        Value remaining = tasks_[i].length;
        for (std::size_t w = 0; w < candidates.size(); ++w)
          for (std::uint64_t bits = candidates[w] & exclusive_[i][w]; bits; bits &= bits - 1)
            remaining += tasks_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))].length;
        if (remaining <= largest) continue;
        largest = remaining;
        best = i;
      }
      if (best == tasks_.size()) break;
      result.push_back(best);
      for (std::size_t w = 0; w < candidates.size(); ++w) candidates[w] &= exclusive_[best][w];
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  // Searches for the longest clique by branch and bound. `open`: tasks that exclude every task of the clique.
  void extend(Clique& clique, Value clique_length, const Clique& open) {
    if (clique_length > best_length_) {
      best_ = clique;
      best_length_ = clique_length;
    }
    Value remaining = length(open);
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (clique_length + remaining <= best_length_ || ++steps_ > kMaxSteps) return;
      remaining -= tasks_[open[k]].length;
      Clique following;
      for (std::size_t j = k + 1; j < open.size(); ++j)
        if (has(exclusive_[open[k]], open[j])) following.push_back(open[j]);
      clique.push_back(open[k]);
      extend(clique, clique_length + tasks_[open[k]].length, following);
      clique.pop_back();
    }
  }

  // True if precedences order all tasks of the clique.
  bool is_chain(const Clique& clique) const {
    return std::all_of(clique.begin(), clique.end(), [&](std::size_t i) {
      return std::all_of(clique.begin(), clique.end(), [&](std::size_t k) { return i == k || has(ordered_[i], k); });
    });
  }

  bool is_of_one_resource(const Clique& clique) const {
    return std::any_of(unary_.begin(), unary_.end(), [&](const Bits& members) {
      return std::all_of(clique.begin(), clique.end(), [&](std::size_t i) { return has(members, i); });
    });
  }

  const Solver& solver_;
  const Domains& d_;
  std::vector<Task> tasks_;
  std::unordered_map<int, std::size_t> numbers_;  // number of the task with each start
  std::vector<Bits> exclusive_,
      ordered_;              // for each task, the tasks that it excludes, and the tasks ordered with it
  std::vector<Bits> unary_;  // for each resource whose tasks exclude each other, these tasks
  Clique best_;
  Value best_length_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace

void post_exclusive_tasks(Solver& solver) {
  if (solver.task_groups().empty()) return;
  ExclusionGraph graph(solver);
  std::size_t count = 0;
  for (const Clique& clique : graph.cliques()) {
    if (count++ == kMaxCliques) return;
    Views starts, durations;
    for (const std::size_t i : clique) {
      starts.push_back(graph.tasks()[i].start);
      durations.push_back(graph.tasks()[i].duration);
    }
    post_no_overlap(solver.engine(), starts, durations, Views(starts.size(), solver.fixed(1)));
  }
}

}  // namespace elimina::cp
