#include "parallel.hpp"

#include <algorithm>
#include <utility>

namespace elimina::cp {

namespace {

constexpr auto kBetweenPolls = std::chrono::milliseconds(20);
constexpr std::size_t kPartsEach = 30, kMostWaiting = 256;

Value value_of(View x, const Values& solution) {
  return x.scale * solution[static_cast<std::size_t>(x.var)] + x.offset;
}

}  // namespace

ParallelSearch::ParallelSearch(const std::vector<Solver*>& copies, Options options) : options_(std::move(options)) {
  for (std::size_t i = 0; i < copies.size(); ++i) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    Options own = options_;
    own.seed = options_.seed + i;
    own.seconds = std::numeric_limits<double>::infinity();
    own.nodes = own.failures = ~std::uint64_t{0};
    own.shared_best = &best_;
    own.poll = [this, &worker] {
      update_statistics(worker);
      if (is_splitting_ && has_ended()) stop_ = true;
      return !stop_;
    };
    worker.search = std::make_unique<Search>(*copies[i], std::move(own));
  }
}

double ParallelSearch::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Finder::Status ParallelSearch::next() {
  if (!begun_) begin();
  std::unique_lock lock(mutex_);
  while (waiting_.empty() && running_ > 0) {
    changed_.wait_for(lock, kBetweenPolls);
    if (!waiting_.empty()) break;
    lock.unlock();
    const bool ended = has_ended();
    lock.lock();
    if (!ended) continue;
    lock.unlock();
    leave();
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
  return end_;
}

void ParallelSearch::begin() {
  begun_ = true;
  start_ = std::chrono::steady_clock::now();
  is_splitting_ = true;
  const bool is_cut = split();
  is_splitting_ = false;
  if (!is_cut) return;
  for (const auto& worker : workers_) {
    const std::lock_guard lock(mutex_);
    try {
      worker->thread = std::thread([this, &worker = *worker] { work(worker); });
    } catch (const std::exception&) {  // there are no more threads: those there are search all parts
      if (worker == workers_.front()) throw std::bad_alloc();
      return;
    }
    ++running_;
  }
}

// All parts are cut in two until there are enough of them. False: a limit came first.
bool ParallelSearch::split() {
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
  return true;
}

void ParallelSearch::work(Worker& worker) {
  try {
    for (bool goes_on = true; goes_on;) {
      std::size_t part;
      {
        const std::lock_guard lock(mutex_);
        part = next_part_++;
      }
      if (part >= parts_.size()) break;
      worker.search->enter(parts_[part]);
      Status status;
      while ((status = worker.search->next()) == Status::solution && offer(worker.search->solution())) {
      }
      goes_on = status == Status::complete;
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

// False: the search is over.
bool ParallelSearch::offer(const Values& solution) {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [&] { return waiting_.size() < kMostWaiting || stop_; });
  if (stop_) return false;
  if (options_.minimise) {
    const Value value = value_of(*options_.minimise, solution);
    if (value >= best_) return true;
    best_ = value;
  }
  waiting_.push_back(solution);
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

// By a limit, or by the poll.
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
  room_.notify_all();
  for (const auto& worker : workers_)
    if (worker->thread.joinable()) worker->thread.join();
  if (begun_) seconds_ = elapsed();
}

}  // namespace elimina::cp
