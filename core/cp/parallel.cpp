#include "parallel.hpp"

#include <algorithm>
#include <utility>

namespace elimina::cp {

namespace {

constexpr std::size_t kPartsEach = 30, kMostWaiting = 256;
constexpr double kRaceSeconds = 2, kPollSeconds = 0.02;

Value value_of(View x, const Values& solution) {
  return x.scale * solution[static_cast<std::size_t>(x.var)] + x.offset;
}

}  // namespace

ParallelSearch::ParallelSearch(const std::vector<Solver*>& copies, Options options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    Options options_of_worker = options_;
    options_of_worker.seed = options_.seed + i;
    options_of_worker.seconds = std::numeric_limits<double>::infinity();
    // Without limits, threads need not share their figures.
    constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};
    if (options_.nodes != kUnlimited || options_.failures != kUnlimited) options_of_worker.shared_figures = &figures_;
    options_of_worker.shared_best = &best_;
    options_of_worker.shared_bound = &bound_;
    options_of_worker.shared_costs = &costs_;
    options_of_worker.pauses.clear();
    if (options_.portfolio) {
      options_of_worker.rows =
          rows_of_thread(portfolio_rows(options_.stretch_scale, options_.has_orderings), i, copies.size());
      options_of_worker.part_rows = portfolio_rows(options_.stretch_scale, options_.has_orderings);
    }
    options_of_worker.poll = [this, &worker] {
      update_statistics(worker);
      if (is_splitting_ && has_ended()) stop_ = true;
      return !stop_ && !(is_racing_ && elapsed() > kRaceSeconds);
    };
    worker.search = std::make_unique<Search>(*copies[i], std::move(options_of_worker));
  }
}

double ParallelSearch::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void ParallelSearch::raise_bound(Value bound) {
  Value shared = bound_.load();
  while (shared < bound && !bound_.compare_exchange_weak(shared, bound)) {
  }
}

void ParallelSearch::adopt(const Values& solution) {
  if (!options_.minimise) return;
  const std::lock_guard lock(mutex_);
  best_ = std::min(best_.load(), value_of(*options_.minimise, solution));
}

Finder::Status ParallelSearch::next() {
  if (!begun_) begin();
  std::unique_lock lock(mutex_);
  // If the threads find solutions as fast as `next` takes them, the loop below never checks the limits, so they are
  // checked here, too.
  if (running_ > 0 && !stop_ && elapsed() > polled_ + kPollSeconds) {
    lock.unlock();
    polled_ = elapsed();
    if (has_ended()) leave();
    lock.lock();
  }
  while (waiting_.empty()) {
    if (running_ == 0) {
      if (!is_racing_ || is_proven_ || stop_) break;
      lock.unlock();
      join();
      is_racing_ = false;
      if (split()) start_threads();
      lock.lock();
      continue;
    }
    changed_.wait_for(lock, std::chrono::duration<double>(kPollSeconds));
    if (!waiting_.empty()) break;
    lock.unlock();
    if (has_ended()) leave();
    else if (pauses_ < options_.pauses.size() && elapsed() > options_.pauses[pauses_]) {
      ++pauses_;
      return Status::paused;
    }
    lock.lock();
  }
  if (!waiting_.empty()) {
    solution_ = std::move(waiting_.front());
    waiting_.pop_front();
    ++solutions_;
    room_.notify_one();
    return Status::solution;
  }
  lock.unlock();
  leave();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (is_proven_) end_ = Status::complete;
  else if (is_limited_) end_ = Status::limit;
  if (end_ == Status::complete && best_ != kNoValue) raise_bound(best_);
  return end_;
}

void ParallelSearch::begin() {
  begun_ = true;
  start_ = std::chrono::steady_clock::now();
  is_racing_ = options_.portfolio && options_.minimise;
  if (is_racing_ || split()) start_threads();
}

void ParallelSearch::start_threads() {
  for (const auto& worker : workers_) {
    const std::lock_guard lock(mutex_);
    try {
      worker->thread = std::thread([this, &worker = *worker] { work(worker); });
    } catch (const std::exception&) {  // the system starts no more threads: the running ones search all parts
      if (worker == workers_.front()) throw std::bad_alloc();
      return;
    }
    ++running_;
  }
}

// Splits all parts in two, again and again, until there are enough or none can be split. Parts that fail are dropped.
// Returns false if a limit ends this first.
bool ParallelSearch::split() {
  is_splitting_ = true;
  Search& search = *workers_.front()->search;
  parts_ = {{}};
  for (bool has_grown = true; has_grown && parts_.size() < kPartsEach * workers_.size();) {
    has_grown = false;
    std::vector<Part> next;
    for (Part& part : parts_) {
      search.enter(part);
      update_statistics(*workers_.front());
      if (stop_ || has_ended()) return false;
      if (search.has_failed()) continue;
      const auto decision = search.decision();
      next.push_back(part);
      if (!decision) continue;
      has_grown = true;
      next.back().push_back(*decision);
      part.push_back(decision->negated());
      next.push_back(std::move(part));
    }
    parts_ = std::move(next);
  }
  is_splitting_ = false;
  return true;
}

void ParallelSearch::work(Worker& worker) {
  try {
    if (is_racing_) race(worker);
    else
      while (search_part(worker)) {
      }
    update_statistics(worker);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    stop_ = true;
  }
  const std::lock_guard lock(mutex_);
  --running_;
  changed_.notify_one();
}

void ParallelSearch::race(Worker& worker) {
  Status status;
  while ((status = worker.search->next()) == Status::solution && offer(*worker.search)) {
  }
  if (status == Status::limit) limit();
  if (status != Status::complete) return;
  const std::lock_guard lock(mutex_);
  is_proven_ = true;
  stop_ = true;
}

// Ends all threads, because one of them has reached a limit.
void ParallelSearch::limit() {
  const std::lock_guard lock(mutex_);
  is_limited_ = true;
  stop_ = true;
}

// Searches the next part; returns false if there is none or the search has ended.
bool ParallelSearch::search_part(Worker& worker) {
  std::size_t part_number;
  {
    const std::lock_guard lock(mutex_);
    part_number = next_part_++;
  }
  if (part_number >= parts_.size()) return false;
  worker.search->enter(parts_[part_number]);
  Status status;
  while ((status = worker.search->next()) == Status::solution && offer(*worker.search)) {
  }
  if (status == Status::limit) limit();
  return status == Status::complete;
}

// Adds the solution of a thread to the queue, unless one at least as good is known. Waits while the queue is full.
// Returns false if the search has ended.
bool ParallelSearch::offer(const Search& search) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return waiting_.size() < kMostWaiting || stop_; });
  if (stop_) return false;
  if (options_.minimise) {
    const Value value = value_of(*options_.minimise, search.solution());
    if (value >= best_) return true;
    best_ = value;
  }
  waiting_.push_back({search.solution(), search.origin()});
  changed_.notify_one();
  return true;
}

void ParallelSearch::update_statistics(Worker& worker) {
  const std::lock_guard lock(worker.mutex);
  worker.statistics = worker.search->statistics();
}

Statistics ParallelSearch::statistics() const {
  Statistics sum;
  for (const auto& worker : workers_) {
    const std::lock_guard lock(worker->mutex);
    const Statistics& s = worker->statistics;
    sum.nodes += s.nodes;
    sum.failures += s.failures;
    sum.restarts += s.restarts;
    sum.nogoods += s.nogoods;
    sum.calls += s.calls;
    sum.peak_depth = std::max(sum.peak_depth, s.peak_depth);
  }
  sum.solutions = solutions_;
  sum.seconds = seconds_;
  return sum;
}

// True if a limit or the poll has ended the search.
bool ParallelSearch::has_ended() {
  seconds_ = elapsed();
  const Statistics s = statistics();
  if (seconds_ > options_.seconds || s.nodes >= options_.nodes || s.failures >= options_.failures) end_ = Status::limit;
  else if (options_.poll && !options_.poll()) end_ = Status::stopped;
  else return false;
  return true;
}

void ParallelSearch::leave() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  join();
  if (begun_) seconds_ = elapsed();
}

void ParallelSearch::join() {
  room_.notify_all();
  for (const auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
}

}  // namespace elimina::cp
