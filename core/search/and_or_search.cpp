#include "and_or_search.hpp"

#include <algorithm>
#include <cmath>

namespace elimina::search {

namespace {

// Relative error of sums of fractions.
constexpr double rounding = 1e-9;

// Threads divide a variable's values among themselves if searches below the variable visit at least this many nodes on
// average.
constexpr std::uint64_t least_shared = 256;

}  // namespace

AndOrSearch::AndOrSearch(const Problem& problem, Cache& cache, Busy* busy)
    : problem_(problem), cache_(cache), path_(problem), busy_(busy), node_(problem.size.size()),
      load_(problem.size.size()), keys_(problem.size.size() * static_cast<std::size_t>(cache.words())) {
  std::size_t values = 0;
  for (const int size : problem.size) {
    first_.push_back(values);
    values += static_cast<std::size_t>(size);
  }
  cost_.resize(values);
  bound_.resize(values);
}

void AndOrSearch::start(Var top, double limit) {
  top_ = top;
  Node& node = node_[top];
  node.lower = top == problem_.root() ? -infinite : path_.below(top);
  node.solved = false;
  cache_.pack(top, path_.value(), key(top));
  look_up(top);
  ended_ = node.solved || node.lower >= limit;
  open(top, limit);
}

bool AndOrSearch::run(std::uint64_t nodes) {
  const std::uint64_t end = nodes_ + nodes;
  while (!ended_ && nodes_ < end) {
    bool alive = true;
    if (choose()) {
      enter();
    } else {
      keep(at_);
      if (at_ == top_) {
        ended_ = true;
        break;
      }
      alive = ascend();
    }
    if (alive) advance();
  }
  return ended_;
}

void AndOrSearch::open(Var v, double limit) {
  at_ = v;
  Node& node = node_[v];
  node.limit = limit;
  node.least = infinite;
  node.chosen = -1;
  node.entered = nodes_++;
  path_.expand(v, cost_.data() + first_[v], bound(v));
  if (!problem_.children[v].empty()) return;
  const double* least = std::min_element(bound(v), bound(v) + problem_.size[v]);
  node.least = *least;
  node.best = static_cast<int>(least - bound(v));
}

bool AndOrSearch::look_up(Var v) {
  Cache::Entry entry;
  if (problem_.children[v].empty() || !cache_.find(key(v), entry)) return false;
  Node& node = node_[v];
  node.lower = entry.solved ? entry.lower : std::max(node.lower, entry.lower);
  node.solved = entry.solved;
  node.best = entry.best;
  return true;
}

// Chooses a value; returns false if the OR node is decided.
bool AndOrSearch::choose() {
  Node& node = node_[at_];
  unmark(at_);
  const double* bounds = bound(at_);
  const double* first = std::min_element(bounds, bounds + problem_.size[at_]);
  if (node.least <= *first || *first >= node.limit) {
    node.solved = node.least <= *first && node.least < infinite;
    node.lower = node.solved ? node.least : std::max(node.lower, *first);
    return false;
  }
  node.target = std::min(node.limit, node.least);
  node.chosen = is_shared(at_) ? pick(at_, node.target) : static_cast<int>(first - bounds);
  return true;
}

bool AndOrSearch::is_shared(Var v) const {
  return busy_ && !problem_.children[v].empty() && load_[v].nodes >= least_shared * load_[v].times;
}

// Returns the value with the least bound among those below the target that the fewest threads search.
int AndOrSearch::pick(Var v, double target) {
  const double* bounds = bound(v);
  Node& node = node_[v];
  int best = -1, least = 0;
  for (int x = 0; x < problem_.size[v]; ++x) {
    if (bounds[x] >= target) continue;
    const std::size_t slot = busy_->slot_of(key(v), cache_.words(), x);
    const int count = busy_->count(slot);
    if (best >= 0 && (count > least || (count == least && bounds[x] >= bounds[best]))) continue;
    best = x;
    least = count;
    node.mark = slot;
  }
  busy_->enter(node.mark);
  node.marked = true;
  return best;
}

void AndOrSearch::unmark(Var v) {
  if (!node_[v].marked) return;
  busy_->leave(node_[v].mark);
  node_[v].marked = false;
}

void AndOrSearch::unmark_up_to(Var upper) {
  for (Var v = at_;; v = problem_.parent[v]) {
    unmark(v);
    if (v == upper) return;
  }
}

void AndOrSearch::enter() {
  ++nodes_;
  path_.assign(at_, node_[at_].chosen);
  const auto children = problem_.children[at_];
  for (const Var c : children) {
    node_[c].lower = path_.below(c);
    node_[c].solved = false;
    if (problem_.children[c].empty()) continue;
    cache_.pack(c, path_.value(), key(c));
    cache_.prefetch(key(c));
  }
  for (const Var c : children) hits_ += look_up(c);
}

double AndOrSearch::sum_of_children(Var v) const {
  double sum = cost_[first_[v] + node_[v].chosen];
  for (const Var c : problem_.children[v]) sum += node_[c].lower;
  return sum;
}

// Opens an unsolved child of the AND node, or stores the AND node's bound in its OR node.
void AndOrSearch::advance() {
  Node& node = node_[at_];
  node.sum = sum_of_children(at_);
  double& lower = bound(at_)[node.chosen];
  if (node.sum >= node.target) {
    lower = std::max(lower, node.sum);
    return;
  }
  for (const Var c : problem_.children[at_]) {
    if (node_[c].solved) continue;
    open(c, node.target - (node.sum - node_[c].lower));
    return;
  }
  lower = infinite;
  node.least = node.sum;
  node.best = node.chosen;
}

// Goes back to the parent's AND node. Returns true if the child was solved: the bound of the AND node may then still be
// below its target.
bool AndOrSearch::ascend() {
  const bool solved = node_[at_].solved;
  at_ = problem_.parent[at_];
  if (solved) return true;
  Node& node = node_[at_];
  double& lower = bound(at_)[node.chosen];
  lower = std::max({lower, node.target, sum_of_children(at_)});
  return false;
}

void AndOrSearch::keep(Var v) {
  const Node& node = node_[v];
  if (problem_.children[v].empty()) return;
  const std::uint64_t nodes = nodes_ - node.entered;
  load_[v].nodes += nodes;
  ++load_[v].times;
  stored_ += cache_.store(key(v), {node.lower, node.solved, node.best}, nodes);
}

double AndOrSearch::least_bound(Var v, double of_chosen) const {
  double least = node_[v].least;
  for (int x = 0; x < problem_.size[v]; ++x) least = std::min(least, x == node_[v].chosen ? of_chosen : bound(v)[x]);
  return std::max(node_[v].lower, least);
}

// Returns a bound on the parent's OR node, given a bound on one of the parent's children.
double AndOrSearch::raised(Var v, double of_child) const {
  const Var above = problem_.parent[v];
  const double sum = sum_of_children(above) - node_[v].lower + std::max(node_[v].lower, of_child);
  return least_bound(above, std::max(sum, bound(above)[node_[above].chosen]));
}

void AndOrSearch::skip() {
  if (ended_) return;
  std::vector<Var> path;
  for (Var v = at_; v != top_; v = problem_.parent[v]) path.push_back(v);
  path.push_back(top_);
  Cache::Entry entry;
  for (auto v = path.rbegin(); v != path.rend(); ++v) {
    Node& node = node_[*v];
    if (problem_.children[*v].empty() || !cache_.find(key(*v), entry) || (!entry.solved && entry.lower < node.limit))
      continue;
    node.lower = entry.lower;
    node.solved = entry.solved;
    node.best = entry.best;
    unmark_up_to(*v);
    at_ = *v;
    ended_ = at_ == top_;
    if (!ended_ && ascend()) advance();
    return;
  }
}

double AndOrSearch::lower() const {
  if (ended_) return node_[top_].lower;
  double lower = least_bound(at_, node_[at_].chosen < 0 ? infinite : bound(at_)[node_[at_].chosen]);
  for (Var v = at_; v != top_; v = problem_.parent[v]) lower = raised(v, lower);
  return lower;
}

void AndOrSearch::release_nodes() {
  if (ended_) return;
  double lower = least_bound(at_, node_[at_].chosen < 0 ? infinite : bound(at_)[node_[at_].chosen]);
  unmark_up_to(top_);
  for (;; at_ = problem_.parent[at_]) {
    const double above = at_ == top_ ? lower : raised(at_, lower);
    node_[at_].lower = std::max(node_[at_].lower, lower);
    keep(at_);
    if (at_ == top_) break;
    lower = above;
  }
  ended_ = true;
}

bool AndOrSearch::decode(const std::function<bool()>& stopped, std::vector<int>& value) {
  constexpr std::uint64_t quantum = 4096;
  const double margin = problem_.integral ? 1 : rounding * (1 + std::abs(node_[problem_.root()].lower));
  std::vector<double> limit(problem_.size.size(), node_[problem_.root()].lower + margin);
  for (const Var v : problem_.preorder) {
    for (const double below : {limit[v], infinite}) {
      start(v, below);
      while (!run(quantum))
        if (stopped()) return false;
      if (solved()) break;
    }
    if (!solved()) return false;
    Node& node = node_[v];
    const double lower = node.lower;
    path_.expand(v, cost_.data() + first_[v], bound(v));
    node.chosen = node.best;
    enter();
    const double sum = sum_of_children(v);
    for (const Var c : problem_.children[v]) limit[c] = lower - (sum - node_[c].lower) + margin;
  }
  value.assign(path_.value().begin(), path_.value().end() - 1);
  return true;
}

}  // namespace elimina::search
