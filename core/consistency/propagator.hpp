// Soft local consistency: costs are shifted between functions, variables and the constant, which bounds all remaining
// solutions.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "decision.hpp"
#include "queue.hpp"
#include "state.hpp"
#include "tally.hpp"

namespace elimina::consistency {

// Establishes EDAC* (de Givry, Heras, Zytnicki and Larrosa, 2005) on functions with two free variables. A function of
// more free variables takes part if it has few cells: the unary costs of its variables move to its first free variable,
// or to one that has no supported value of cost 0. After values are removed, its marginals move to its variables. Below
// the root, free variables with few free neighbours are eliminated: one function of the neighbours replaces the
// variable's functions.
class Propagator {
 public:
  explicit Propagator(const Network& network);

  const State& state() const { return state_; }
  void mark();
  void undo();

  // Removes all values that the decision excludes; returns false if no value remains. The removals are queued for
  // `propagate`; `forget` empties the queues instead.
  bool decide(const Decision& decision);
  void forget();

  // Propagates until nothing changes. Returns false if all remaining solutions cost at least `top`. Shifts that gain at
  // most `slack` are skipped if they might take long.
  bool propagate(Cost top, Cost slack);

  // Returns a value of the free variable v. As far as is known, its unary cost and its least cost in each function of v
  // add up to at most the slack (see `propagate`).
  int support(Var v) const { return support_[v]; }

  // Gives eliminated variables their best values, once all other variables have values.
  void extend(std::vector<int>& value) const;

  // `eliminated`: the variables in the sequence of their elimination. `list_costs` appends the cost of each value of
  // such a variable, given the values of all variables that were not eliminated before it, and overwrites the
  // variable's own value in `value`. The difference between the costs of two values is that between the costs of the
  // best assignments with these values.
  std::size_t eliminated_count() const { return eliminated_.size(); }
  Var eliminated(std::size_t rank) const { return eliminated_[rank].var; }
  void list_costs(std::size_t rank, std::vector<int>& value, std::vector<std::pair<int, Cost>>& costs) const;

  // Returns the sum of the weights of those functions of a variable that have another free variable; each conflict adds
  // 1 to a weight (Boussemart et al., 2004).
  double weight(Var v) const;

  // An upper bound on `weight`, in constant time.
  double most_weight(Var v) const;

  // Adds the weights learned since the last exchange to `of_all`, the weights of all threads. The sums then replace
  // this propagator's weights.
  void exchange_weights(std::vector<double>& of_all);

  // Cost of an assignment of remaining values, by the equivalent costs of the current state.
  Cost at(const std::vector<int>& value) const;

 private:
  // Sets of positions whose unary costs are included.
  static constexpr std::uint64_t all = ~std::uint64_t{0}, none = 0;

  // Limit on costs shifted to a value; more would approach forbidden costs.
  static constexpr Cost most_shifted = Cost{1} << 53;

  // A function seen as a function of the variables at two positions; all its other variables have values.
  struct View {
    const Cost* table;
    std::size_t major, minor;
    Cost fixed;
    const Cost *shift, *other_shift;
    Var other;

    Cost row(int x) const { return -fixed - shift[x]; }
    Cost at(int x, int y) const { return table[x * major + y * minor] - other_shift[y]; }
  };

  View view(const Function& f, int p, int q) const;
  int free_positions(const Function& f, int except, int* other) const;
  bool is_wide(const Function& f) const;
  int first_free(const Function& f) const;

  bool settle();
  bool normalise(Var v);
  void add_weights();
  bool prune(Var v);
  void lower(Var v, Cost high);
  bool drop(Var v, int x);
  bool fail(Var v);
  void rise(Var v, int x, Cost by, int function);
  bool over(Cost cost) const { return state_.constant() + cost >= top_; }

  bool after_removals(Var v);
  bool after_rise(Var v);
  bool exist(Var v);
  bool is_supported(Var v, int x);
  enum class Found { nothing, something, conflict };
  Cost least(const Occurrence& occurrence, int x);
  Cost least(const View& view, std::size_t cell, int x, const Cost* added);
  void write_costs(const View& view, const Cost* added);
  Cost least_of_row(const View& view, int& hint, int x);
  bool is_least(const View& t, int y, int x, const Cost* added) const {
    return y < network_.size[t.other] && state_.has(t.other, y) && t.at(x, y) + added[y] + t.row(x) == 0;
  }
  bool is_dense(const View& view) const;
  Found find(const Occurrence& occurrence, bool with_unary);
  bool pull(const Occurrence& occurrence);
  bool gather(const Occurrence& occurrence);
  bool shift_unary_into(const Occurrence& occurrence, int other);
  bool shift_all_unary_into(const Occurrence& occurrence);
  void give_back(const Function& f, int position);
  void project(const Occurrence& occurrence);
  void marginal(const Function& f, int p, std::span<const int> values, std::uint64_t with_unary);
  void marginal_of_count(const Function& f, int p, std::span<const int> values, std::uint64_t with_unary);
  void load(const Function& f, int position, std::uint64_t with_unary);
  bool pull_all(int function);
  bool gather_first(int function, int except);
  void wake_others(const Occurrence& occurrence);

  // Functions of the network, followed by the messages of eliminated variables.
  const Function& function(int i) const {
    const auto original_count = network_.functions.size();
    return static_cast<std::size_t>(i) < original_count ? network_.functions[i]
                                                        : messages_[i - original_count].function;
  }
  int origin_of(int i) const {
    const auto original_count = network_.functions.size();
    return static_cast<std::size_t>(i) < original_count ? i : messages_[i - original_count].origin;
  }

  // Calls the action with each occurrence of a variable until the action returns false; returns true if it never does.
  template <class Action>
  bool each_place(Var v, Action action) const {
    for (const auto* occurrences : {&network_.touching[v], &added_[v]})
      for (const Occurrence& occurrence : *occurrences)
        if (!is_dead_[occurrence.function] && !action(occurrence)) return false;
    return true;
  }

  // Largest number of free neighbours of an eliminated variable, and a list of them, padded with -1.
  static constexpr int most_neighbours = 3;
  using Neighbours = std::array<Var, most_neighbours>;

  void wake_thin(Var v);
  bool eliminate(Var v);
  std::optional<int> find_neighbours(Var v, Neighbours& projection) const;
  struct Term;
  Term term_of(const Function& f, Var v, const Neighbours& near) const;
  bool add_message(std::span<const Var> scope, int origin);

  const Network& network_;
  State state_;
  Cost top_ = forbidden, slack_ = 0;
  Queue pending_, removed_, risen_, unsupported_;
  Queue reduced_, changed_;  // counted functions: those whose variables lost values, and those with costs to gather
  Queue thin_;               // variables that may have few free neighbours
  bool raised_ = true;
  std::size_t patience_ = 0;  // number of further variables without existential support that this propagation treats
  // Supported value of each variable, and the function that last shifted costs to it.
  std::vector<int> support_, suspect_;
  std::vector<int> hint_;  // for each shifted cost, the other variable's value at which the minimum was last found
  std::vector<double> weight_;
  std::vector<double> exchanged_;      // weights after the last exchange
  std::vector<double> weight_of_all_;  // for each variable, the sum of the weights of its functions of the network
  std::vector<Cost> high_;             // for each variable, an upper bound on the costs of its values
  std::vector<std::pair<Var, Cost>> lowered_;
  std::vector<Cost> marginal_, amount_, need_, along_, nothing_;
  std::vector<std::vector<Cost>> lent_;
  Tally tally_;
  std::vector<int> open_;  // free positions of the tallied function
  struct Axis {
    std::vector<std::size_t> offset;
    std::vector<Cost> cost;
  };
  std::vector<Axis> axes_;
  std::vector<std::size_t> digit_;

  // A message: the minimum over the values of an eliminated variable, as a function of its neighbours.
  struct Message {
    Function function;
    int origin = 0;  // function of the network whose weight rises with the message's conflicts
  };
  struct Mark {
    std::size_t eliminated, killed, messages, cells, lowered;
  };
  struct Eliminated {
    Var var;
    std::size_t first, last;  // range, in `killed_`, of the functions that the variable's message replaces
  };
  std::vector<Message> messages_;  // the first `message_count_` are in use
  std::size_t message_count_ = 0;
  std::vector<char> is_dead_;                   // for each function, true if an elimination has replaced it
  std::vector<std::vector<Occurrence>> added_;  // messages of each variable
  Cost cost_below(const Eliminated& eliminated, const std::vector<int>& value, Cost limit) const;

  std::vector<Eliminated> eliminated_;
  std::vector<int> killed_;
  std::vector<Mark> marks_;
  std::vector<Cost> message_;
};

}  // namespace elimina::consistency
