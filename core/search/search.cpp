#include "search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "cache.hpp"
#include "greedy.hpp"
#include "searcher.hpp"

namespace elimina::search {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double tolerance = 1e-9;
constexpr std::uint64_t quantum = 2048;
constexpr auto between_polls = std::chrono::milliseconds(200);

class Run {
 public:
  Run(const Problem& problem, const Options& options)
      : problem_(problem), options_(options), cache_(problem, options.memory, options.threads > 1), upper_(options.upper) {}

  Report run() {
    if (!options_.start.empty()) offer(options_.start);
    std::vector<std::thread> threads;
    running_ = options_.threads;
    for (int i = 0; i < options_.threads; ++i) threads.emplace_back([this, i] { work(i); });
    listen();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return finished();
  }

 private:
  // The thread that called waits, and tells how far it got.
  void listen() {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, between_polls, [&] { return running_ == 0; })) {
      const double lower = lower_, upper = upper_;
      lock.unlock();
      if (!options_.poll(lower, upper, nodes_) || since_start() > options_.seconds) stop_ = true;
      lock.lock();
    }
  }

  void work(int number) {
    try {
      descend(number);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard lock(mutex_);
    if (--running_ == 0) ended_.notify_one();
  }

  void descend(int number) {
    std::shared_lock shared(growing_);
    Greedy greedy(problem_, &cache_);
    if (number == 0) offer(greedy.run());
    Searcher searcher(problem_, cache_, step(number));
    std::uint64_t counted = 0, dived = 0;
    const std::uint64_t between_dives = 16 * problem_.size.size();
    while (!stop_) {
      const double upper = upper_;
      searcher.start(problem_.root(), limit(upper));
      raise(searcher.lower());
      bool ended = false;
      while (!stop_ && upper == upper_ && !(ended = searcher.run(quantum))) {
        nodes_ += searcher.nodes() - counted;
        counted = searcher.nodes();
        raise(searcher.lower());
        make_room(shared);
        if (counted - dived > between_dives) {
          dived = counted;
          offer(greedy.run());
        }
        if (nodes_ >= options_.nodes || since_start() > options_.seconds) stop_ = true;
      }
      if (ended) {
        finish(searcher);
      } else {
        raise(searcher.lower());
        searcher.leave();
      }
    }
    nodes_ += searcher.nodes() - counted;
    hits_ += searcher.hits();
  }

  // The cache grows once all threads wait for it.
  void make_room(std::shared_lock<std::shared_mutex>& shared) {
    if (!cache_.crowded()) return;
    shared.unlock();
    {
      const std::unique_lock lock(growing_);
      if (cache_.crowded()) cache_.grow();
    }
    shared.lock();
  }

  // The root is decided: its value is the optimum, or nothing is better than the best solution.
  void finish(Searcher& searcher) {
    if (!searcher.solved()) {
      if (searcher.lower() >= limit(upper_)) raise(upper_), stop_ = true;
      return;
    }
    raise(searcher.lower());
    std::vector<int> value;
    if (searcher.decode([&] { return stop_.load(); }, value)) {
      offer(value);
      raise(upper_);
    }
    stop_ = true;
  }

  double step(int number) const { return (problem_.integral ? 1 : 1e-3) * (1 + number); }

  // Solutions have to be below it.
  double limit(double upper) const {
    if (upper == infinite || problem_.integral) return upper;
    return upper - tolerance * std::max(1.0, std::abs(upper));
  }

  void raise(double lower) {
    const std::lock_guard lock(mutex_);
    lower = std::min(lower, upper_.load());
    if (!(lower > lower_)) return;
    lower_ = lower;
    note();
  }

  void offer(const std::vector<int>& value) {
    const double cost = problem_.cost(value);
    const std::lock_guard lock(mutex_);
    if (!(cost < upper_)) return;
    if (best_.value.empty()) best_.first = since_start();
    best_.value = value;
    best_.cost = cost;
    upper_ = cost;
    note();
  }

  void note() { best_.events.push_back({since_start(), lower_, upper_, nodes_}); }

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
  Clock::time_point begun_ = Clock::now();
  std::atomic<double> upper_, lower_ = -infinite;
  std::atomic<std::uint64_t> nodes_ = 0, hits_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::shared_mutex growing_;
  std::condition_variable ended_;
  std::exception_ptr failure_;
  int running_ = 0;
  Report best_;
};

}  // namespace

Report search(const Problem& problem, const Options& options) { return Run(problem, options).run(); }

}  // namespace elimina::search
