#include "search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include "and_or_search.hpp"
#include "busy.hpp"
#include "cache.hpp"
#include "exec/run_threads.hpp"
#include "greedy_dives.hpp"
#include "path.hpp"
#include "stop.hpp"

namespace elimina::search {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double tolerance = 1e-9;
constexpr std::uint64_t first_quantum = 8, last_quantum = 2048;
constexpr double first_width_share = 1.0 / 32;  // first step of the root's limit, as a share of the gap
// Dives may take `dive_time_share` of the time so far or, if that is more, `first_dive_time_share` of the time limit.
constexpr double dive_time_share = 0.5, first_dive_time_share = 0.25;

class Run {
 public:
  Run(const Problem& problem, const Options& options)
      : problem_(problem), options_(options), cache_(problem, options.memory, options.threads > 1),
        upper_(options.upper) {}

  Report run() {
    if (!options_.start.empty()) offer(options_.start);
    double cost, bound;
    Path(problem_).expand(problem_.root(), &cost, &bound);
    raise(bound);
    run_threads(
        options_.threads, [this](int number) { descend(number); },
        [this] {
          if (!report() || since_start() > options_.seconds) stop_ = true;
        },
        [this] { stop_ = true; });
    return finished();
  }

 private:
  // Runs iterations of depth-first search with rising limits on the root. If an iteration finds a solution below its
  // limit, this solution is optimal, and the search ends. It also ends once no solution can be better than the
  // incumbent.
  void descend(int number) {
    const Inside inside(*this);
    GreedyDives dives(problem_, cache_, options_.seed + static_cast<std::uint64_t>(number));
    double dive_seconds = 0;
    if (number == 0) improve(dives, 0, dive_seconds);
    AndOrSearch and_or_search(problem_, cache_, options_.threads > 1 ? &busy_ : nullptr);
    std::uint64_t counted = 0, quantum = first_quantum;
    while (!stop_) {
      const double below = next_limit();
      and_or_search.start(problem_.root(), below);
      bool ended = false;
      while (!stop_ && limit(upper_) >= below && !(ended = and_or_search.run(turn(quantum)))) {
        if (options_.threads > 1) and_or_search.skip();
        cache_.count(and_or_search.take_stored());
        quantum = std::min(2 * quantum, last_quantum);
        nodes_ += and_or_search.nodes() - counted;
        counted = and_or_search.nodes();
        raise(and_or_search.lower());
        make_room();
        improve(dives, counted, dive_seconds);
        if (nodes_ >= options_.nodes || since_start() > options_.seconds) stop_ = true;
      }
      raise(and_or_search.lower());
      if (ended) finish(and_or_search, below);
      else and_or_search.release_nodes();
    }
    cache_.count(and_or_search.take_stored());
    nodes_ += and_or_search.nodes() - counted;
    hits_ += and_or_search.hits();
  }

  // Returns the number of nodes until the next look at the other threads, at most the remaining nodes.
  std::uint64_t turn(std::uint64_t quantum) const {
    return std::min(quantum, options_.nodes - std::min<std::uint64_t>(options_.nodes, nodes_));
  }

  // Makes the dives that are due. `dive_seconds`: seconds of the thread's dives so far.
  void improve(GreedyDives& dives, std::uint64_t nodes, double& dive_seconds) {
    while (dives.is_due(nodes) && !stop_ && lower_ < limit(upper_)) {
      const double begun = since_start();
      const double remaining =
          std::max(first_dive_time_share * options_.seconds, dive_time_share * begun) - dive_seconds;
      if (!(remaining > 0)) return;
      const TimeLimit time(remaining);
      offer(dives.solution(upper_ - lower_));
      dive_seconds += since_start() - begun;
    }
  }

  // Counts a thread as a user of the cache, as long as the object lives.
  class Inside {
   public:
    explicit Inside(Run& run) : run_(run) {
      const std::lock_guard lock(run_.growing_);
      ++run_.inside_;
    }
    ~Inside() {
      const std::lock_guard lock(run_.growing_);
      --run_.inside_;
      run_.changed_.notify_all();
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Run& run_;
  };

  // Lets a crowded cache grow once no thread uses it; waiting threads continue right after.
  void make_room() {
    if (!cache_.crowded()) return;
    std::unique_lock lock(growing_);
    --inside_;
    changed_.wait(lock, [this] { return inside_ == 0 || !cache_.crowded(); });
    while (cache_.crowded()) cache_.grow(options_.threads);
    ++inside_;
    changed_.notify_all();
  }

  // Ends an iteration: stops the search if the bound has reached the incumbent, or if a solution is below the limit;
  // otherwise, widens the step of the limit.
  void finish(AndOrSearch& and_or_search, double below) {
    const double upper = upper_;
    if (and_or_search.lower() >= limit(upper)) {
      raise(upper);
      stop_ = true;
    } else if (and_or_search.solved()) {
      std::vector<int> value;
      if (and_or_search.decode([&] { return stop_.load(); }, value)) offer(value);
      // The incumbent's cost is summed in another order than the bound, so the two may differ by rounding alone.
      if (lower_ >= limit(upper_)) raise(upper_);
      stop_ = true;
    } else {
      widen(below);
    }
  }

  double next_limit() {
    const std::lock_guard lock(mutex_);
    if (width_ == 0) width_ = first_width_share * (upper_ < infinite ? upper_ - lower_ : 1 + std::abs(lower_));
    if (problem_.integral) width_ = std::max(1.0, std::ceil(width_));
    return std::min(limit(upper_), lower_ + width_);
  }

  // Doubles the step of the limit, unless this iteration visited about two thirds of all nodes so far, or more. In that
  // case, iterations grow fast enough with the same step.
  void widen(double below) {
    const std::lock_guard lock(mutex_);
    if (below <= last_limit_) return;
    last_limit_ = below;
    if (nodes_ - nodes_before_ < 2 * nodes_before_ + last_quantum) width_ *= 2;
    nodes_before_ = nodes_;
  }

  // Returns the cost below which solutions count.
  double limit(double upper) const {
    if (upper == infinite || problem_.integral) return upper;
    return upper - tolerance * std::max(1.0, std::abs(upper));
  }

  void raise(double lower) {
    if (!(lower > lower_)) return;
    const std::lock_guard lock(mutex_);
    lower = std::min(lower, upper_.load());
    if (!(lower > lower_)) return;
    lower_ = lower;
    record_event();
  }

  void offer(const std::vector<int>& value) {
    const double cost = problem_.cost(value);
    const std::lock_guard lock(mutex_);
    if (!(cost < upper_)) return;
    if (best_.value.empty()) best_.first = since_start();
    best_.value = value;
    best_.cost = cost;
    upper_ = cost;
    record_event();
  }

  void record_event() { best_.events.push_back({since_start(), lower_, upper_, nodes_}); }

  // Reports bounds and incumbent; returns false to stop the search.
  bool report() {
    std::vector<int> value;
    double upper;
    {
      const std::lock_guard lock(mutex_);
      upper = upper_;
      if (!best_.value.empty() && upper < reported_) value = best_.value;
      reported_ = upper;
    }
    return options_.poll(lower_, upper, nodes_, value.empty() ? nullptr : &value);
  }

  double since_start() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

  Report finished() {
    best_.bound = std::min(lower_.load(), upper_.load());
    best_.nodes = nodes_;
    best_.hits = hits_;
    best_.entries = cache_.entries();
    best_.bytes = cache_.bytes();
    best_.seconds = since_start();
    return std::move(best_);
  }

  const Problem& problem_;
  const Options& options_;
  Cache cache_;
  Busy busy_;
  Clock::time_point begun_ = Clock::now();
  std::atomic<double> upper_, lower_ = -infinite;
  std::atomic<std::uint64_t> nodes_ = 0, hits_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::mutex growing_;
  std::condition_variable changed_;
  int inside_ = 0;  // number of threads that use the cache
  double width_ = 0, last_limit_ = -infinite;
  double reported_ = infinite;  // upper bound of the last report
  std::uint64_t nodes_before_ = 0;
  Report best_;
};

}  // namespace

Report search(const Problem& problem, const Options& options) { return Run(problem, options).run(); }

}  // namespace elimina::search
