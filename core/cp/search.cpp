#include "search.hpp"

#include <algorithm>
#include <cmath>

namespace elimina::cp {

namespace {

// The term of Luby, Sinclair and Zuckerman's sequence, from 1 on: 1 1 2 1 1 2 4 ...
double luby(std::uint64_t i) {
  for (;;) {
    std::uint64_t size = 1;
    while (size < i) size = 2 * size + 1;
    if (size == i) return static_cast<double>((size + 1) / 2);
    i -= size / 2;
  }
}

// Variables without a rule come last, in their order.
Rule remaining(const Solver& solver, const std::vector<Rule>& rules) {
  std::vector<bool> has_rule(static_cast<std::size_t>(solver.variables()), false);
  for (const Rule& rule : rules)
    for (const View x : rule.xs) has_rule[static_cast<std::size_t>(x.var)] = true;
  Rule rest;
  for (int v = 0; v < solver.variables(); ++v)
    if (!has_rule[static_cast<std::size_t>(v)]) rest.xs.push_back({v});
  return rest;
}

}  // namespace

double Restarts::cutoff(std::uint64_t round) const {
  switch (kind) {
    case Kind::constant: return scale;
    case Kind::linear: return scale * static_cast<double>(round);
    case Kind::geometric: return scale * std::pow(growth, static_cast<double>(round - 1));
    case Kind::luby: return scale * luby(round);
    default: return std::numeric_limits<double>::infinity();
  }
}

Search::Search(Solver& solver, Options options)
    : solver_(solver), engine_(solver.engine()), options_(std::move(options)), random_(options_.seed),
      start_(std::chrono::steady_clock::now()) {
  calls_before_ = engine_.calls();
  engine_.watch([this] {
    out_of_time_ = elapsed() > options_.seconds;
    return !out_of_time_ && (!options_.poll || options_.poll());
  });
  if (options_.relax && options_.minimise) neighbourhood_.emplace(*options_.relax);
  if (options_.free)
    for (Rule& rule : options_.rules) rule.variable_ordering = VariableOrdering::dom_w_deg;
  if ((options_.free || neighbourhood_) && options_.restarts.kind == Restarts::Kind::none)
    options_.restarts = {Restarts::Kind::luby, 100, 1};
}

double Search::elapsed() const {
  return spent_before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Search::leave() {
  if (left_) return;
  left_ = true;
  if (nogoods_) nogoods_->clear();
  unwind(0);
  engine_.watch(nullptr);
}

// Implications of the root stay with the solver; below it there is a level for all of the search, one for what is known of the part
// that is searched, and one to restart from.
void Search::begin() {
  begun_ = true;
  failed_ = is_infeasible_ = !engine_.propagate();
  ++statistics_.nodes;
  engine_.mark();
  const Rule rest = remaining(solver_, options_.rules);
  for (const Rule& rule : options_.rules) branchers_.emplace_back(engine_, rule);
  branchers_.emplace_back(engine_, rest);
  if (options_.free) {
    value_orderings_.resize(static_cast<std::size_t>(solver_.variables()));
    for (const Brancher& b : branchers_)
      for (const View x : b.rule().xs) value_orderings_[static_cast<std::size_t>(x.var)] = b.rule().value_ordering;
  }
  if (options_.restarts.kind != Restarts::Kind::none) {
    auto nogoods = std::make_unique<Nogoods>();
    nogoods_ = nogoods.get();
    engine_.post(std::move(nogoods));
  }
  outside_ = engine_.level();
  engine_.mark();
  engine_.mark();
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
  at_solution_ = is_diving_ = false;
  rounds_ = 0;
  failures_at_restart_ = statistics_.failures;
  ++statistics_.nodes;
  engine_.mark();
  failed_ = is_infeasible_;
  for (const Decision& decision : decisions) failed_ = failed_ || !decision.apply(engine_.domains());
  failed_ = failed_ || !bounded() || !engine_.propagate();
  engine_.mark();
}

std::optional<Decision> Search::decision() {
  if (!options_.free) return chosen();
  // Lecoutre, Sais, Tabary and Vidal, Artificial Intelligence 2009; but the variable stays the first one above, too, once it got a value.
  const Domains& d = engine_.domains();
  const auto decision =
      conflict_ && !d.fixed(*conflict_)
          ? decide_value(d, *conflict_, value_orderings_[static_cast<std::size_t>(conflict_->var)], random_)
          : chosen();
  return decision ? prefer(*decision) : decision;
}

std::optional<Decision> Search::chosen() {
  Decision decision;
  for (Brancher& b : branchers_)
    if (b.decide(engine_, random_, decision)) return decision;
  return std::nullopt;
}

Search::Status Search::next() {
  start_ = std::chrono::steady_clock::now();
  spent_before_ = statistics_.seconds;
  if (!begun_) begin();
  Turn result = Turn::go_on;
  while (result == Turn::go_on) result = step();
  statistics_.seconds = elapsed();
  statistics_.calls = engine_.calls() - calls_before_;
  switch (result) {
    case Turn::solution: return Status::solution;
    case Turn::complete: return Status::complete;
    case Turn::limit: return Status::limit;
    default: return Status::stopped;
  }
}

std::optional<Search::Turn> Search::spent() {
  if (engine_.stopped()) return out_of_time_ ? Turn::limit : Turn::stopped;
  if (statistics_.nodes >= options_.nodes || statistics_.failures >= options_.failures) return Turn::limit;
  const double now = elapsed();
  if (now > options_.seconds) return Turn::limit;
  if (statistics_.nodes % 16 != 0 && now < next_poll_) return std::nullopt;
  constexpr double kPause = 0.005;
  next_poll_ = now + kPause;
  if (options_.poll && !options_.poll()) return Turn::stopped;
  solver_.has_searched(now);
  return std::nullopt;
}

Search::Turn Search::step() {
  if (const auto end = spent()) return *end;
  if (at_solution_) return go_back();
  return failed_ ? fail() : descend();
}

Search::Turn Search::descend() {
  const auto chosen = decision();
  if (!chosen) return found();
  engine_.mark();
  path_.push_back(*chosen);
  statistics_.peak_depth = std::max(statistics_.peak_depth, path_.size());
  ++statistics_.nodes;
  failed_ = !chosen->apply(engine_.domains()) || !engine_.propagate();
  return Turn::go_on;
}

Decision Search::prefer(const Decision& decision) const {
  if (phase_.empty()) return decision;
  const View x = decision.x;
  const Value value = x.scale * phase_[static_cast<std::size_t>(x.var)] + x.offset;
  return engine_.domains().has(x, value) ? Decision{x, Test::is, value} : decision;
}

Search::Turn Search::found() {
  ++statistics_.solutions;
  solution_.resize(static_cast<std::size_t>(solver_.variables()));
  for (int v = 0; v < solver_.variables(); ++v) solution_[static_cast<std::size_t>(v)] = solver_.domains().lo(v);
  if (options_.minimise) best_ = solver_.domains().lo(*options_.minimise);
  if (options_.free) phase_ = solution_;
  at_solution_ = true;
  return Turn::solution;
}

bool Search::bounded() {
  if (!options_.minimise) return true;
  const Value elsewhere = options_.shared_best ? options_.shared_best->load(std::memory_order_relaxed) : kNoValue;
  const Value best = std::min(best_.value_or(kNoValue), elsewhere);
  return best == kNoValue || engine_.domains().set_hi(*options_.minimise, best - 1);
}

// The other branch of the last decision that has one.
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
  if (options_.free && !path_.empty() && (!conflict_ || engine_.domains().fixed(*conflict_)))
    conflict_ = path_.back().x;
  const double failures = static_cast<double>(statistics_.failures - failures_at_restart_);
  if (!path_.empty() && failures >= options_.restarts.cutoff(rounds_ + 1)) {
    if (is_diving_) neighbourhood_->narrow();
    return restart();
  }
  return go_back();
}

Search::Turn Search::go_back() {
  at_solution_ = false;
  failed_ = !back();
  if (!failed_ || engine_.stopped()) return Turn::go_on;
  if (!is_diving_) return Turn::complete;
  neighbourhood_->widen();
  return restart();
}

Search::Turn Search::restart() {
  ++statistics_.restarts;
  ++rounds_;
  failures_at_restart_ = statistics_.failures;
  unwind(outside_ + 1);
  if (!is_diving_) record();
  path_.clear();
  refuted_.clear();
  ++statistics_.nodes;
  failed_ = !bounded() || !engine_.propagate();
  engine_.mark();
  is_diving_ = neighbourhood_ && !is_diving_ && !failed_ && !solution_.empty();
  if (is_diving_) neighbourhood_->fix(engine_, solution_, random_);
  return Turn::go_on;
}

// The path's last decision has failed. What is refuted below no decision stays refuted.
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
