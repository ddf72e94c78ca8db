#include "search.hpp"

#include <algorithm>
#include <utility>

#include "exclusive_tasks.hpp"

namespace elimina::cp {

namespace {

// Returns the last rule: all variables without another rule, in the order of their numbers.
Rule remaining(const Solver& solver, const std::vector<Rule>& rules) {
  std::vector<bool> has_rule(static_cast<std::size_t>(solver.variables()), false);
  for (const Rule& rule : rules)
    for (const View x : rule.xs) has_rule[static_cast<std::size_t>(x.var)] = true;
  Rule rest;
  for (int v = 0; v < solver.variables(); ++v)
    if (!has_rule[static_cast<std::size_t>(v)]) rest.xs.push_back({v});
  return rest;
}

// Returns a rule for the starts of tasks that have no rule: the earliest start comes first, so that schedules are built
// in the order of time.
Rule starts_of(const Solver& solver, const Rule& rest) {
  std::vector<bool> is_start(static_cast<std::size_t>(solver.variables()), false);
  for (const TaskGroup& group : solver.task_groups())
    for (const View x : group.starts) is_start[static_cast<std::size_t>(x.var)] = true;
  Rule starts{{}, VariableOrdering::smallest, ValueOrdering::min};
  for (const View x : rest.xs)
    if (is_start[static_cast<std::size_t>(x.var)]) starts.xs.push_back(x);
  return starts;
}

// Factor by which each failure counts more than the previous one if there is an objective, because each better solution
// changes which decisions fail. A failure counts about a third as much as one that comes a thousand failures later.
constexpr double kWeightGrowth = 1.001;

// Limit on the failures of the first stretches that try to refute a target. It is doubled whenever even the smallest
// step turns out too hard.
constexpr double kTargetFailures = 100;

// In a search for a target, domains that are intervals with more values than this are halved.
constexpr Value kMaxTriedValues = 16;

// Returns seconds as a duration of the clock, which cannot hold more than some centuries.
std::chrono::steady_clock::duration clock_time(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

std::vector<Row> rows_of(const Options& options) {
  if (!options.rows.empty()) return options.rows;
  if (options.portfolio) return portfolio_rows(options.stretch_scale, options.has_orderings);
  return forced_rows(options.restarts, options.free, options.relax && options.minimise);
}

}  // namespace

void Target::set(Value lo, Value hi) {
  used_step_ = std::clamp(step_, Value{1}, std::max(Value{1}, (hi - lo) / 2));
  value_ = lo + used_step_ - 1;
}

void Target::grow() { step_ = std::min(2 * used_step_, kLimit); }

void Target::shrink() {
  if (used_step_ == 1) failures_ *= 2;
  step_ = std::max(Value{1}, used_step_ / 4);
}

Search::Search(Solver& solver, Options options)
    : solver_(solver), engine_(solver.engine()), options_(std::move(options)), schedule_(rows_of(options_)),
      random_(options_.seed), target_(kTargetFailures * options_.stretch_scale),
      start_(std::chrono::steady_clock::now()), deadline_(start_ + clock_time(options_.seconds)) {
  calls_before_ = engine_.calls();
  if (options_.portfolio && options_.minimise) engine_.age_weights(kWeightGrowth);
  engine_.watch([this] {
    out_of_time_ = std::chrono::steady_clock::now() > deadline_;
    return !out_of_time_ && (!options_.poll || options_.poll());
  });
  if (options_.relax && options_.minimise && (options_.portfolio || schedule_.has(Scope::neighbourhood)))
    neighbourhood_.emplace(*options_.relax);
}

double Search::elapsed() const { return elapsed_at(std::chrono::steady_clock::now()); }

double Search::elapsed_at(std::chrono::steady_clock::time_point time) const {
  return spent_before_ + std::chrono::duration<double>(time - start_).count();
}

void Search::leave() {
  if (left_) return;
  left_ = true;
  if (nogoods_) nogoods_->clear();
  unwind(0);
  engine_.watch(nullptr);
}

// Implications of the root outlive the search. Below the root are three levels: for the whole search, for facts of the
// part of the tree that is searched, and for restarts.
void Search::begin() {
  begun_ = true;
  failed_ = !engine_.propagate();
  if (!failed_ && (options_.portfolio || schedule_.has_free())) {
    post_exclusive_tasks(solver_);
    failed_ = !engine_.propagate();
  }
  is_infeasible_ = failed_;
  if (options_.minimise && !failed_) raise_bound(engine_.domains().lo(*options_.minimise));
  ++statistics_.nodes;
  engine_.mark();
  const Rule rest = remaining(solver_, options_.rules);
  for (const Rule& rule : options_.rules) branchers_.emplace_back(engine_, rule);
  if (const Rule starts = starts_of(solver_, rest); !starts.xs.empty()) branchers_.emplace_back(engine_, starts);
  branchers_.emplace_back(engine_, rest);
  if (options_.portfolio || schedule_.has_free()) {
    value_orderings_.resize(static_cast<std::size_t>(solver_.variables()));
    for (Rule& rule : options_.rules) {
      note_value_orderings(rule);
      rule.variable_ordering = VariableOrdering::dom_w_deg;
      rule.groups.clear();
      free_branchers_.emplace_back(engine_, rule);
    }
    free_branchers_.emplace_back(engine_, rest);
    if (!solver_.orders().empty()) order_brancher_.emplace(engine_, solver_.orders());
    if (order_brancher_ && options_.relax) is_order_search_ = are_most_starts(options_.relax->xs);
    if (neighbourhood_)
      free_neighbourhood_.emplace(order_brancher_ ? Relaxation{order_brancher_->variables(), {}} : *options_.relax);
  }
  if (neighbourhood_ && options_.portfolio) {
    cost_neighbourhood_.emplace(*options_.relax);
    // With `order_brancher_`, no task neighbourhood is needed: the orders of tasks are variables, so the free
    // neighbourhood keeps these orders already.
    if (!order_brancher_ && !solver_.task_groups().empty()) task_neighbourhood_.emplace(engine_, solver_.task_groups());
  }
  if (options_.portfolio || schedule_.restarts()) {
    auto nogoods = std::make_unique<Nogoods>();
    nogoods_ = nogoods.get();
    engine_.post(std::move(nogoods));
  }
  if (!options_.hints.empty()) begin_hints();
  outside_ = engine_.level();
  engine_.mark();
  engine_.mark();
}

// True if most of the variables without a value are starts of tasks that `order_brancher_` orders.
bool Search::are_most_starts(const Views& xs) const {
  std::size_t starts = 0, open = 0;
  for (const View x : xs) {
    if (engine_.domains().fixed(x)) continue;
    ++open;
    starts += order_brancher_->is_start(x);
  }
  return 2 * starts > open;
}

void Search::note_value_orderings(const Rule& rule) {
  for (const View x : rule.xs) value_orderings_[static_cast<std::size_t>(x.var)] = rule.value_ordering;
  for (const std::vector<Rule>& group : rule.groups)
    for (const Rule& each : group) note_value_orderings(each);
}

// Prepares the hints. Without restarts, hints do not come before the model's orderings: to refute a wrong hint, its
// whole subtree would be searched.
void Search::begin_hints() {
  hinted_.assign(static_cast<std::size_t>(solver_.variables()), kNoValue);
  for (const auto& [x, value] : options_.hints) {
    Value& hinted = hinted_[static_cast<std::size_t>(x.var)];
    if (hinted == kNoValue && (value - x.offset) % x.scale == 0) hinted = (value - x.offset) / x.scale;
  }
  if (!free_branchers_.empty()) phase_ = hinted_;
  if (schedule_.restarts()) hint_brancher_.emplace(engine_, options_.hints);
}

// Returns the neighbourhood of the current row. A free search keeps orders of tasks, if the model has any, so it has a
// neighbourhood with a size of its own.
Neighbourhood& Search::neighbourhood() {
  switch (schedule_.row().ordering) {
    case Ordering::free: return free_neighbourhood_ ? *free_neighbourhood_ : *neighbourhood_;
    case Ordering::costs: return *cost_neighbourhood_;
    default: return *neighbourhood_;
  }
}

void Search::widen() {
  if (schedule_.row().scope == Scope::neighbourhood) neighbourhood().widen();
  if (schedule_.row().scope == Scope::task_neighbourhood) task_neighbourhood_->widen();
}

void Search::narrow() {
  if (schedule_.row().scope == Scope::neighbourhood) neighbourhood().narrow();
  if (schedule_.row().scope == Scope::task_neighbourhood) task_neighbourhood_->narrow();
}

// Removes values with which no solution is better than the incumbent.
bool Search::exclude_costs() {
  if (!costs_ && options_.shared_costs) costs_ = options_.shared_costs->get();
  const Value best = incumbent();
  return !costs_ || best == kNoValue || costs_->filter(engine_.domains(), best, next_cost_);
}

void Search::unwind(std::size_t level) {
  while (engine_.level() > level) engine_.undo();
}

void Search::enter(const std::vector<Decision>& decisions) {
  if (!begun_) begin();
  if (nogoods_) nogoods_->clear();
  unwind(outside_);
  path_.clear();
  refuted_.clear();
  conflict_.reset();
  hint_brancher_.reset();
  if (task_neighbourhood_) task_neighbourhood_->clear();
  next_cost_ = 0;
  at_solution_ = is_refuted_ = is_success_ = false;
  has_stretch_ = true;
  // A part is searched below decisions, so a bound on the objective that is found there does not hold for the whole
  // tree.
  is_part_ = true;
  schedule_ = Schedule(options_.part_rows.empty() ? rows_of(options_) : options_.part_rows);
  engine_.count_failures(true);
  failures_at_restart_ = statistics_.failures;
  calls_at_restart_ = engine_.calls();
  ++statistics_.nodes;
  share_figures();
  engine_.mark();
  failed_ = is_infeasible_;
  for (const Decision& decision : decisions) failed_ = failed_ || !decision.apply(engine_.domains());
  failed_ = failed_ || !bounded() || !is_aimed() || !engine_.propagate();
  engine_.mark();
}

// True if each task without a start was postponed, and nothing has changed its earliest start since.
bool Search::is_dead_end() {
  for (const Refuted& refuted : refuted_)
    if (refuted.decision.test == Test::is) task_neighbourhood_->postpone(refuted.decision.x, refuted.decision.value);
  earliest_ = task_neighbourhood_->earliest(engine_.domains(), random_);
  const bool result = !earliest_ && task_neighbourhood_->is_open(engine_.domains());
  for (const Refuted& refuted : refuted_) task_neighbourhood_->forget(refuted.decision.x);
  return result;
}

std::optional<Decision> Search::decision() {
  Decision hint;
  if (schedule_.row().scope == Scope::task_neighbourhood && earliest_) return *std::exchange(earliest_, {});
  if (hint_brancher_ && hint_brancher_->decide(engine_, hint)) return hint;
  if (follows_orderings()) {
    const auto decision = chosen();
    return decision && !hinted_.empty() ? prefer(engine_.domains(), *decision, hinted_) : decision;
  }
  // Last conflict (Lecoutre, Sais, Tabary and Vidal, Artificial Intelligence 2009). Unlike in their paper, the variable
  // stays the first choice after it has got a value, because backtracking may take the value away.
  const Domains& d = engine_.domains();
  std::optional<Decision> decision;
  if (schedule_.row().ordering == Ordering::costs) {
    if (conflict_ && !d.fixed(*conflict_)) decision = costs_->decide(d, *conflict_);
    if (!decision) decision = costs_->decide(engine_);
    if (decision) return decision;
  }
  if (conflict_ && !d.fixed(*conflict_)) {
    if (order_brancher_) decision = order_brancher_->decide(d, *conflict_);
    if (!decision)
      decision = decide_value(d, *conflict_, value_orderings_[static_cast<std::size_t>(conflict_->var)], random_);
  } else {
    if (order_brancher_) decision = order_brancher_->decide(engine_);
    if (!decision) decision = chosen();
  }
  // The interval is halved, because excluding half of a start's window takes about as long as excluding a single start.
  if (decision && schedule_.row().scope == Scope::target && d.is_interval(decision->x) &&
      d.size(decision->x) > kMaxTriedValues)
    return Decision{decision->x, Test::at_most, floor_div(d.lo(decision->x) + d.hi(decision->x), 2)};
  if (!decision || phase_.empty() || (order_brancher_ && order_brancher_->is_start(decision->x))) return decision;
  return prefer(d, *decision, phase_);
}

std::optional<Decision> Search::chosen() {
  Decision decision;
  for (Brancher& b : follows_orderings() ? branchers_ : free_branchers_)
    if (b.decide(engine_, random_, decision)) return decision;
  return std::nullopt;
}

Search::Status Search::next() {
  start_ = std::chrono::steady_clock::now();
  spent_before_ = statistics_.seconds;
  if (!begun_) {
    begin();
    // Another search may have found a better solution or bound in the meantime, which is propagated at the root.
    failed_ = failed_ || !bounded() || !is_aimed() || !engine_.propagate();
  }
  Turn result = Turn::go_on;
  while (result == Turn::go_on) result = step();
  statistics_.seconds = elapsed();
  statistics_.calls = engine_.calls() - calls_before_;
  switch (result) {
    case Turn::solution: return Status::solution;
    case Turn::complete: return Status::complete;
    case Turn::limit: return Status::limit;
    case Turn::paused: return Status::paused;
    default: return Status::stopped;
  }
}

std::optional<Search::Turn> Search::spent() {
  if (engine_.stopped()) return out_of_time_ ? Turn::limit : Turn::stopped;
  if (has_spent_figures()) return Turn::limit;
  const auto time = std::chrono::steady_clock::now();
  if (time > deadline_) return Turn::limit;
  const double now = elapsed_at(time);
  if (statistics_.nodes % 16 != 0 && now < next_poll_) return std::nullopt;
  constexpr double kPause = 0.005;
  next_poll_ = now + kPause;
  if (options_.poll && !options_.poll()) return Turn::stopped;
  solver_.has_searched(now);
  return std::nullopt;
}

// Adds the figures since the last call to the shared ones.
void Search::share_figures() {
  SharedFigures* const shared = options_.shared_figures;
  if (!shared) return;
  shared->nodes += statistics_.nodes - std::exchange(shared_nodes_, statistics_.nodes);
  shared->failures += statistics_.failures - std::exchange(shared_failures_, statistics_.failures);
}

// True if a limit of nodes or failures is reached.
bool Search::has_spent_figures() {
  share_figures();
  const SharedFigures* const shared = options_.shared_figures;
  return (shared ? shared->nodes.load() : statistics_.nodes) >= options_.nodes ||
         (shared ? shared->failures.load() : statistics_.failures) >= options_.failures;
}

Search::Turn Search::step() {
  if (const auto end = spent()) return *end;
  if (!has_stretch_) {
    start_stretch();
    return Turn::go_on;
  }
  if (at_solution_) return go_back();
  return failed_ ? fail() : descend();
}

Search::Turn Search::descend() {
  if (schedule_.row().scope == Scope::task_neighbourhood && is_dead_end()) {
    failed_ = true;
    return Turn::go_on;
  }
  const auto chosen = decision();
  if (!chosen) return found();
  engine_.mark();
  path_.push_back(*chosen);
  statistics_.peak_depth = std::max(statistics_.peak_depth, path_.size());
  ++statistics_.nodes;
  failed_ = !chosen->apply(engine_.domains()) || !engine_.propagate();
  return Turn::go_on;
}

Decision Search::prefer(const Domains& d, const Decision& decision, const Values& preferred) {
  const View x = decision.x;
  const Value inner = preferred[static_cast<std::size_t>(x.var)];
  return inner != kNoValue && d.has(x.var, inner) ? Decision{x, Test::is, x.scale * inner + x.offset} : decision;
}

const char* Search::stretch() const {
  if (hint_brancher_) return "hints";
  const Row& row = schedule_.row();
  switch (row.scope) {
    case Scope::neighbourhood:
    case Scope::task_neighbourhood: return "neighbourhood";
    case Scope::target: return "target";
    default: return row.ordering == Ordering::model ? "orderings" : "free search";
  }
}

Search::Turn Search::found() {
  ++statistics_.solutions;
  solution_.resize(static_cast<std::size_t>(solver_.variables()));
  for (int v = 0; v < solver_.variables(); ++v) solution_[static_cast<std::size_t>(v)] = solver_.domains().lo(v);
  if (options_.minimise) best_ = solver_.domains().lo(*options_.minimise);
  if (!free_branchers_.empty()) phase_ = solution_;
  origin_ = stretch();
  at_solution_ = is_success_ = true;
  return Turn::solution;
}

Value Search::incumbent() const {
  const Value elsewhere = options_.shared_best ? options_.shared_best->load(std::memory_order_relaxed) : kNoValue;
  return std::min(best_.value_or(kNoValue), elsewhere);
}

// A refuted target may be worse than a solution that another thread has just found, so the bound is at most the
// objective of this solution.
Value Search::bound() const { return std::min(bound_, incumbent()); }

bool Search::bounded() {
  if (!options_.minimise) return true;
  const Value best = incumbent();
  return best == kNoValue || engine_.domains().set_hi(*options_.minimise, best - 1);
}

bool Search::is_aimed() {
  if (!options_.minimise) return true;
  if (options_.shared_bound) bound_ = std::max(bound_, options_.shared_bound->load(std::memory_order_relaxed));
  return bound_ == kNoBound || engine_.domains().set_lo(*options_.minimise, bound_);
}

void Search::adopt(const Values& solution) {
  if (!options_.minimise) return;
  const View x = *options_.minimise;
  const Value value = x.scale * solution.at(static_cast<std::size_t>(x.var)) + x.offset;
  if (best_ && *best_ <= value) return;
  best_ = value;
  phase_ = solution_ = solution;
}

void Search::raise_bound(Value bound) {
  bound_ = std::max(bound_, bound);
  if (!options_.shared_bound) return;
  Value shared = options_.shared_bound->load(std::memory_order_relaxed);
  while (shared < bound_ && !options_.shared_bound->compare_exchange_weak(shared, bound_)) {
  }
}

// Takes the other branch of the last decision whose other branch does not fail. Returns false if there is none, or if
// the engine was stopped.
bool Search::back() {
  while (!path_.empty()) {
    const Decision refuted = path_.back(), other = refuted.negated();
    path_.pop_back();
    while (!refuted_.empty() && refuted_.back().depth > path_.size()) refuted_.pop_back();
    refuted_.push_back({path_.size(), refuted});
    engine_.undo();
    ++statistics_.nodes;
    if (bounded() && other.apply(engine_.domains()) && engine_.propagate()) return true;
    if (engine_.stopped()) return false;
    ++statistics_.failures;
  }
  return false;
}

Search::Turn Search::fail() {
  ++statistics_.failures;
  const Row& row = schedule_.row();
  if (row.ordering != Ordering::model && !path_.empty() && (!conflict_ || engine_.domains().fixed(*conflict_)))
    conflict_ = path_.back().x;
  const double failures = static_cast<double>(statistics_.failures - failures_at_restart_);
  const double cutoff = row.scope == Scope::target ? target_.failures() : schedule_.cutoff();
  if (path_.empty() || failures < cutoff) return go_back();
  narrow();
  if (row.scope == Scope::target) target_.shrink();
  return restart();
}

Search::Turn Search::go_back() {
  at_solution_ = false;
  failed_ = !back();
  if (!failed_ || engine_.stopped()) return Turn::go_on;
  const Scope scope = schedule_.row().scope;
  if (scope == Scope::tree || is_refuted_) {
    if (!is_part_ && incumbent() != kNoValue) raise_bound(incumbent());
    return Turn::complete;
  }
  widen();
  if (scope == Scope::target) {
    raise_bound(target_.value() + 1);
    target_.grow();
    is_success_ = true;
  }
  return restart();
}

Search::Turn Search::restart() {
  ++statistics_.restarts;
  unwind(outside_ + 1);
  if (task_neighbourhood_) task_neighbourhood_->clear();
  if (schedule_.row().scope == Scope::tree) record();
  path_.clear();
  refuted_.clear();
  failed_ = has_stretch_ = false;
  hint_brancher_.reset();
  if (pauses_ == options_.pauses.size() || elapsed() < options_.pauses[pauses_]) return Turn::go_on;
  ++pauses_;
  return Turn::paused;
}

// Begins a stretch, after propagating facts that hold for all better solutions.
void Search::start_stretch() {
  ++statistics_.nodes;
  failed_ = is_refuted_ = !bounded() || !is_aimed() || !exclude_costs() || !engine_.propagate();
  if (options_.minimise && !failed_ && !is_part_) raise_bound(engine_.domains().lo(*options_.minimise));
  engine_.mark();
  has_stretch_ = true;
  const std::uint64_t calls = engine_.calls();
  schedule_.advance(static_cast<double>(calls - calls_at_restart_ + 1), std::exchange(is_success_, false),
                    [this](const Row& row) { return applies(row); });
  calls_at_restart_ = calls;
  failures_at_restart_ = statistics_.failures;
  // Failures in a neighbourhood are often due to the values that it keeps. They are not counted, because the counts
  // would mislead searches of the tree.
  const Scope scope = schedule_.row().scope;
  engine_.count_failures(scope == Scope::tree || scope == Scope::target);
  if (failed_) return;
  Domains& d = engine_.domains();
  switch (scope) {
    case Scope::tree: return;
    case Scope::neighbourhood: return neighbourhood().fix(engine_, solution_, random_);
    case Scope::task_neighbourhood:
      task_neighbourhood_->fix(engine_, solution_, random_);
      failed_ = !engine_.propagate();
      return;
    case Scope::target:
      target_.set(d.lo(*options_.minimise), d.hi(*options_.minimise));
      failed_ = !d.set_hi(*options_.minimise, target_.value()) || !engine_.propagate();
  }
}

bool Search::applies(const Row& row) const {
  if (row.ordering == Ordering::costs && !costs_) return false;
  if (row.scope == Scope::tree || failed_) return row.scope == Scope::tree;
  if (row.scope == Scope::task_neighbourhood) return task_neighbourhood_ && !solution_.empty();
  // No schedule becomes shorter while tasks keep their starts. This neighbourhood is therefore left out if the search
  // decides orders of tasks: its free neighbourhood keeps only orders.
  if (is_order_search_ && options_.portfolio && row.scope == Scope::neighbourhood && row.ordering == Ordering::model)
    return false;
  if (row.scope == Scope::neighbourhood) return neighbourhood_ && !solution_.empty();
  const Domains& d = engine_.domains();
  return options_.minimise && !is_part_ && d.lo(*options_.minimise) < d.hi(*options_.minimise);
}

// Adds the nogoods of the path, whose last decision has failed. A decision that was refuted with no decision above it
// is excluded for good.
void Search::record() {
  refuted_.push_back({path_.size() - 1, path_.back()});
  statistics_.nogoods += refuted_.size();
  std::vector<Step> branch;
  std::size_t depth = 0;
  for (const Refuted& refuted : refuted_) {
    for (; depth < refuted.depth; ++depth) branch.push_back({path_[depth], false});
    branch.push_back({refuted.decision, true});
  }
  nogoods_->add(engine_, std::move(branch));
}

}  // namespace elimina::cp
