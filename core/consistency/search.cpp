#include "search.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "exec/run_threads.hpp"

namespace elimina::consistency {

namespace {

constexpr std::uint64_t turn = 32, most_failures = 1 << 14;

// A longer time limit counts as no limit.
constexpr double most_seconds = 1e9;

}  // namespace

Search::Search(network::Network model, std::vector<Var> order, Cost step, Cost slack, int threads, std::size_t count)
    : network_(std::move(model), std::move(order)), step_(step), slack_(slack),
      active_(static_cast<std::size_t>(threads), forbidden), best_(count), top_(network_.upper) {
  DepthFirstSearch root(network_, count);
  is_possible_ = root.prepare(limits());
  if (is_possible_) {
    lower_ = root.bound();
    open_.push_back({});
    open_.back().bound = root.bound();
  } else {
    lower_ = top_.load();
  }
  for (int i = 0; i < threads; ++i) depth_first_searches_.push_back(root);
}

void Search::update_incumbent(Cost cost, const std::vector<int>& value) {
  top_ = std::min(top_.load(), cost - step_ + 1);
  preferred_ = network_.inner(value);
  note_bound();
}

void Search::add_solution(const std::vector<int>& value) {
  std::vector<int> assignment = network_.inner(value);
  const Cost cost = network_.at(assignment);
  if (cost < top_) best_.offer(cost, assignment);
  if (!has_solution()) return;
  network::add_nearby(best_, network_.size, top_, [&](std::vector<int>& neighbour, Var v, std::vector<Cost>& costs) {
    network_.list_costs(neighbour, v, costs);
  });
  note_solutions();
  note_bound();
}

void Search::replace_open(std::vector<Open> open) {
  open_ = is_possible_ ? std::move(open) : std::vector<Open>{};
  std::make_heap(open_.begin(), open_.end(), Later{});
  lower_ = open_.empty() ? top_.load() : std::min(top_.load(), open_.front().bound);
}

bool Search::run(const Limits& limits) {
  stop_ = false;
  deadline_ = Clock::now() + std::chrono::duration<double>(std::min(limits.seconds, most_seconds));
  most_nodes_ = limits.nodes;
  most_open_ = limits.memory / (sizeof(Open) + 16 * sizeof(Decision));
  has_room_ = open_.size() < most_open_;
  const auto stop = [&] {
    stop_ = true;
    changed_.notify_all();
  };
  const auto poll = [&] {
    if (!report(limits) || Clock::now() >= deadline_) stop();
  };
  run_threads(
      static_cast<int>(depth_first_searches_.size()), [&](int number) { work(static_cast<std::size_t>(number)); }, poll,
      stop);
  return open_.empty();
}

double Search::progress() const {
  double remaining = 0;
  for (const Open& node : open_) remaining += std::ldexp(1.0, -static_cast<int>(node.length) - (node.last.var >= 0));
  return 1 - remaining;
}

// Reports bounds and incumbent; returns false to stop.
bool Search::report(const Limits& limits) {
  std::vector<int> value;
  Cost cost;
  {
    const std::lock_guard lock(mutex_);
    cost = cost_;
    if (has_solution() && cost < reported_) value = best();
    reported_ = cost;
  }
  return limits.poll(lower_, cost, nodes_, value.empty() ? nullptr : &value);
}

void Search::work(std::size_t number) {
  DepthFirstSearch& depth_first = depth_first_searches_[number];
  Open node;
  while (pop_node(number, node)) {
    explore(depth_first, node);
    push_nodes(number, depth_first.release_open());
  }
}

// Removes the open node with the least bound, waiting for one if necessary. Returns false if the search is complete or
// has to stop.
bool Search::pop_node(std::size_t number, Open& node) {
  std::unique_lock lock(mutex_);
  while (true) {
    const bool idle = std::all_of(active_.begin(), active_.end(), [](Cost bound) { return bound == forbidden; });
    if (!open_.empty() && open_.front().bound >= top_) open_.clear();
    if (open_.empty() && idle) {
      note_bound();
      changed_.notify_all();
      return false;
    }
    if (is_over()) return false;
    if (!open_.empty()) break;
    ++waiting_;
    changed_.wait(lock);
    --waiting_;
  }
  std::pop_heap(open_.begin(), open_.end(), Later{});
  node = std::move(open_.back());
  open_.pop_back();
  active_[number] = node.bound;
  return true;
}

void Search::explore(DepthFirstSearch& depth_first, const Open& node) {
  const std::uint64_t failures = depth_first.failures();
  std::uint64_t counted = depth_first.nodes();
  {
    const std::lock_guard lock(mutex_);
    depth_first.prefer(preferred_);
  }
  depth_first.enter(node, limits());
  while (!depth_first.done() && !is_over()) {
    if (depth_first.run(limits(), turn)) offer(depth_first.solution());
    nodes_ += depth_first.nodes() - counted;
    counted = depth_first.nodes();
    const std::uint64_t max_failures = waiting_ > 0 ? 1 : failures_.load();
    if (depth_first.failures() - failures >= max_failures && has_room_ && !depth_first.is_extending()) break;
  }
  nodes_ += depth_first.nodes() - counted;
}

void Search::push_nodes(std::size_t number, std::vector<Open> nodes) {
  const std::lock_guard lock(mutex_);
  for (Open& node : nodes) {
    node.bound = std::max(node.bound, active_[number]);
    if (node.bound >= top_) continue;
    open_.push_back(std::move(node));
    std::push_heap(open_.begin(), open_.end(), Later{});
  }
  active_[number] = forbidden;
  adapt(depth_first_searches_[number]);
  if (depth_first_searches_.size() > 1) depth_first_searches_[number].exchange_weights(weights_);
  has_room_ = open_.size() < most_open_;
  note_bound();
  changed_.notify_all();
}

void Search::adapt(const DepthFirstSearch& depth_first) {
  const std::uint64_t replayed = depth_first.replayed(), nodes = depth_first.nodes();
  if (replayed * 10 > nodes && failures_ < most_failures) failures_ = failures_ * 2;
  else if (replayed * 20 < nodes && failures_ > 1) failures_ = failures_ / 2;
}

void Search::offer(const std::vector<int>& value) {
  const Cost cost = network_.at(value);
  const std::lock_guard lock(mutex_);
  // A search that resumes at a solution finds the solution's extensions again. Such extensions are not counted as new.
  if (cost < top_ && best_.offer(cost, value)) note_solutions();
}

void Search::note_solutions() {
  const network::Solution& first = best_.solutions().front();
  if (first.cost < cost_) preferred_ = first.value, cost_ = first.cost;
  if (best_.is_full()) top_ = std::min(top_.load(), best_.limit() - step_ + 1);
}

void Search::note_bound() {
  Cost lower = top_;
  if (!open_.empty()) lower = std::min(lower, open_.front().bound);
  for (const Cost bound : active_) lower = std::min(lower, bound);
  lower_ = std::max(lower_.load(), lower);
}

}  // namespace elimina::consistency
