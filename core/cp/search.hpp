// Depth-first search with restarts, one solution at a time.
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <optional>

#include "neighbourhood.hpp"
#include "nogoods.hpp"
#include "schedule.hpp"
#include "solver.hpp"
#include "value_costs.hpp"

namespace elimina::cp {

// Nodes and failures of several searches together.
struct SharedFigures {
  std::atomic<std::uint64_t> nodes = 0, failures = 0;
};

struct Options {
  std::vector<Rule> rules;       // variables without a rule come last
  std::optional<View> minimise;  // each solution has to be better than the previous one
  Restarts restarts;             // nogoods are kept: no solution comes twice, and every search ends
  // If set, the search alternates between neighbourhoods of the incumbent and the complete tree. It restarts by Luby's
  // sequence unless other restarts are given. Needs an objective.
  std::optional<Relaxation> relax;
  // Values to try first. A search with restarts gives these values before all other decisions until its first restart,
  // and then drops wrong hints.
  std::vector<Hint> hints;
  // True for a search by dom/wdeg that decides the last conflict's variable first, tries values of the last solution
  // first, and restarts by Luby's sequence unless other restarts are given.
  bool free = false;
  // True for a schedule of complete, free and neighbourhood searches and of lower bounds; `relax` then has the
  // variables of neighbourhoods.
  bool portfolio = false;
  double stretch_scale = 1;    // factor of the failures of the schedule's stretches
  bool has_orderings = false;  // true if the model has orderings, which come first
  std::vector<Row> rows;       // rows of the search and of its parts (`enter`); empty: made from the options above
  std::vector<Row> part_rows;
  // Times in seconds, in ascending order. After each of them, `next` returns `paused` at the end of a stretch of the
  // schedule.
  std::vector<double> pauses;
  std::uint64_t seed = 0;
  double seconds = std::numeric_limits<double>::infinity();  // from construction, the time between calls included
  std::uint64_t nodes = ~std::uint64_t{0}, failures = ~std::uint64_t{0};
  std::function<bool()> poll;  // called now and then; false ends the search
  // Shared with other searches. `shared_best`: the least objective that they have found, or kNoValue. `shared_bound`:
  // their greatest lower bound on the objective, or kNoBound. `shared_costs`: costs of values.
  const std::atomic<Value>* shared_best = nullptr;
  std::atomic<Value>* shared_bound = nullptr;
  const SharedValueCosts* shared_costs = nullptr;
  // If given, the limits of nodes and failures are for all searches that share it.
  SharedFigures* shared_figures = nullptr;
};

struct Statistics {
  std::uint64_t nodes = 0, failures = 0, solutions = 0, restarts = 0, nogoods = 0, calls = 0;
  std::size_t peak_depth = 0;
  double seconds = 0;
};

inline constexpr Value kNoValue = std::numeric_limits<Value>::max(), kNoBound = std::numeric_limits<Value>::min();

// Interface of searches that find one solution after another.
class Finder {
 public:
  // Outcome of `next`. `complete`: there is no other (better) solution; `limit`: time, nodes or failures are used up;
  // `stopped`: by the poll; `paused`: see `Options`.
  enum class Status { solution, complete, limit, stopped, paused };

  virtual ~Finder() = default;
  virtual Status next() = 0;
  // The last solution: values of all variables.
  virtual const Values& solution() const = 0;
  // Part of the schedule that reached the last solution.
  virtual const char* origin() const = 0;
  virtual Statistics statistics() const = 0;
  // Lower bound on the objective, or kNoBound.
  virtual Value bound() const = 0;
  // Raises the bound to one found elsewhere.
  virtual void raise_bound(Value bound) = 0;
  // Takes a better solution found elsewhere. Solutions found later have to be better than this one.
  virtual void adopt(const Values& solution) = 0;
  // Takes costs of values (core/cp/value_costs.hpp), which hold for all solutions better than the incumbent.
  virtual void set_costs(std::shared_ptr<const ValueCosts> costs) = 0;
};

// Target: a value of the objective that a stretch tries to refute. Steps between targets grow with each refutation.
class Target {
 public:
  explicit Target(double failures) : failures_(failures) {}
  Value value() const { return value_; }
  double failures() const { return failures_; }
  // Sets the target for an objective in [lo, hi).
  void set(Value lo, Value hi);
  // Adapts the step: `grow` after a refutation, `shrink` after a stretch has reached its limit on failures.
  void grow();
  void shrink();

 private:
  Value value_ = 0, step_ = kLimit, used_step_ = 1;
  double failures_;
};

class Search final : public Finder {
 public:
  // A solver can be searched only once: implications of the root stay in it.
  Search(Solver& solver, Options options);
  ~Search() override { leave(); }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  Status next() override;
  void leave();

  const Values& solution() const override { return solution_; }
  const char* origin() const override { return origin_; }
  Statistics statistics() const override { return statistics_; }
  Value bound() const override;
  void raise_bound(Value bound) override;
  void adopt(const Values& solution) override;
  void set_costs(std::shared_ptr<const ValueCosts> costs) override { costs_ = std::move(costs); }

  // Restarts the search below some decisions: `next` then returns solutions for which they hold. Unless `has_failed()`,
  // `decision` returns the next decision, or nullopt if all variables have values.
  void enter(const std::vector<Decision>& decisions);
  bool has_failed() const { return failed_; }
  std::optional<Decision> decision();

 private:
  enum class Turn { go_on, solution, complete, limit, stopped, paused };
  // A decision that was refuted below the first `depth` decisions of the path, so that its other branch was taken.
  struct Refuted {
    std::size_t depth;
    Decision decision;
  };

  void begin();
  Turn step();
  Turn fail();
  Turn go_back();
  Turn descend();
  Turn found();
  Turn restart();
  void start_stretch();
  bool applies(const Row& row) const;
  bool is_aimed();
  void unwind(std::size_t level);
  Neighbourhood& neighbourhood();
  void widen();
  void narrow();
  bool exclude_costs();
  bool is_dead_end();
  bool follows_orderings() const { return schedule_.row().ordering == Ordering::model; }
  void record();
  Value incumbent() const;
  bool bounded();
  bool back();
  std::optional<Decision> chosen();
  static Decision prefer(const Domains& d, const Decision& decision, const Values& preferred);
  void begin_hints();
  void note_value_orderings(const Rule& rule);
  bool are_most_starts(const Views& xs) const;
  const char* stretch() const;
  std::optional<Turn> spent();
  void share_figures();
  bool has_spent_figures();
  // Seconds of all calls of `next`, until now or until a time during the current call.
  double elapsed() const;
  double elapsed_at(std::chrono::steady_clock::time_point time) const;

  Solver& solver_;
  Engine& engine_;
  Options options_;
  Schedule schedule_;
  std::vector<Brancher> branchers_, free_branchers_;  // by the model's orderings, and by dom/wdeg
  std::optional<OrderBrancher> order_brancher_;       // comes first in a free search
  std::vector<Decision> path_;
  std::vector<Refuted> refuted_;
  Nogoods* nogoods_ = nullptr;
  std::optional<View> conflict_;  // variable of a failed decision; replaced by a later one only if it has a value
  std::vector<ValueOrdering> value_orderings_;  // ordering of each variable, for free searches
  Random random_;
  std::optional<Neighbourhood> neighbourhood_, free_neighbourhood_, cost_neighbourhood_;
  std::optional<TaskNeighbourhood> task_neighbourhood_;
  std::shared_ptr<const ValueCosts> costs_;
  std::size_t next_cost_ = 0, pauses_ = 0;
  std::optional<Decision> earliest_;  // decision on an earliest start, in neighbourhoods of tasks
  // For each variable, its value in the last solution, its saved value, and its hinted value; kNoValue if there is
  // none. The model's orderings prefer hints, free searches prefer saved values.
  Values solution_, phase_, hinted_;
  std::optional<HintBrancher> hint_brancher_;  // used until the first restart
  const char* origin_ = "";
  std::optional<Value> best_;
  Value bound_ = kNoBound;
  Target target_;
  Statistics statistics_;
  // `start_`: of the current call of `next`. `deadline_`: passes between calls, too.
  std::chrono::steady_clock::time_point start_, deadline_;
  std::uint64_t calls_before_ = 0, failures_at_restart_ = 0, calls_at_restart_ = 0;
  std::uint64_t shared_nodes_ = 0, shared_failures_ = 0;  // own figures that are part of the shared ones
  std::size_t outside_ = 0;                               // level outside the search: its root is the next one
  double spent_before_ = 0, next_poll_ = 0;
  bool begun_ = false, left_ = false, failed_ = false, at_solution_ = false, out_of_time_ = false, is_refuted_ = false,
       is_infeasible_ = false, is_part_ = false, has_stretch_ = true, is_success_ = false,
       is_order_search_ = false;  // the model's tasks have orders, and most of its variables are their starts
};

}  // namespace elimina::cp
