// Soft local consistency: costs shifted between functions, variables and the constant, which bounds all that is left.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <vector>

#include "decision.hpp"
#include "queue.hpp"
#include "state.hpp"
#include "tally.hpp"

namespace elimina::consistency {

// EDAC* (de Givry, Heras, Zytnicki and Larrosa, 2005) on functions of two variables that are free. On more of them, as long as their cells
// are few, costs of the others are shifted to the first one, or to one that has no value without costs, and marginals after removals.
// Below the root, free variables with few free neighbours are eliminated: their functions give way to one of the neighbours.
class Propagator {
 public:
  explicit Propagator(const Network& network);

  const State& state() const { return state_; }
  void mark();
  void undo();

  // Leaves only values that the decision allows; false: there are none. `propagate` draws the conclusions, unless `forget` is called.
  bool decide(const Decision& decision);
  void forget();

  // Until nothing moves. False: all that is left costs at least `top`. Shifts that gain at most `slack` are left out where they might go on
  // for long.
  bool propagate(Cost top, Cost slack);

  // A value of a free variable that costs nothing, and that the other variables can follow for nothing, as far as that is known.
  int support(Var v) const { return support_[v]; }

  // Gives their best values to the eliminated variables, once all others have values.
  void extend(std::vector<int>& value) const;

  // Number of conflicts of the functions with another free variable (Boussemart et al., 2004).
  double weight(Var v) const;

  // An upper bound of it, which takes no time.
  double most_weight(Var v) const;

  // Add the weights of functions that were learned since the last exchange to those of all threads, and take these.
  void exchange_weights(std::vector<double>& of_all);

  // Equivalent costs: of an assignment of values that are left, in the state as it is.
  Cost at(const std::vector<int>& value) const;

 private:
  // Positions whose unary costs count.
  static constexpr std::uint64_t all = ~std::uint64_t{0}, none = 0;

  // Costs shifted to one value; more would come near forbidden ones.
  static constexpr Cost most_shifted = Cost{1} << 53;

  // A function as one of two of its positions; the others have values.
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
  Cost least(const Place& place, int x);
  Cost least(const View& view, std::size_t cell, int x, const Cost* added);
  void lay(const View& view, const Cost* added);
  Cost least_of_row(const View& view, int& hint, int x);
  bool is_least(const View& t, int y, int x, const Cost* added) const {
    return y < network_.size[t.other] && state_.has(t.other, y) && t.at(x, y) + added[y] + t.row(x) == 0;
  }
  bool is_dense(const View& view) const;
  Found find(const Place& place, bool with_unary);
  bool pull(const Place& place);
  bool gather(const Place& place);
  bool lend(const Place& place, int other);
  bool lend_all(const Place& place);
  void give_back(const Function& f, int position);
  void project(const Place& place);
  void marginal(const Function& f, int p, std::span<const int> values, std::uint64_t with_unary);
  void marginal_of_count(const Function& f, int p, std::span<const int> values, std::uint64_t with_unary);
  void load(const Function& f, int position, std::uint64_t with_unary);
  bool pull_all(int function);
  bool gather_first(int function, int except);
  void wake_others(const Place& place);

  // Functions of the network, and after these the messages of eliminated variables.
  const Function& function(int i) const {
    const auto given = network_.functions.size();
    return static_cast<std::size_t>(i) < given ? network_.functions[i] : messages_[i - given].function;
  }
  int origin_of(int i) const {
    const auto given = network_.functions.size();
    return static_cast<std::size_t>(i) < given ? i : messages_[i - given].origin;
  }

  // Calls the action with each place of a variable until it returns false; returns whether none did.
  template <class Action>
  bool each_place(Var v, Action action) const {
    for (const auto* places : {&network_.touching[v], &added_[v]})
      for (const Place& place : *places)
        if (!is_dead_[place.function] && !action(place)) return false;
    return true;
  }

  // Free neighbours of a variable that is eliminated; -1 where there are fewer.
  static constexpr int most_neighbours = 3;
  using Neighbours = std::array<Var, most_neighbours>;

  void wake_thin(Var v);
  bool eliminate(Var v);
  std::optional<int> find_neighbours(Var v, Neighbours& found) const;
  struct Part;
  Part part_of(const Function& f, Var v, const Neighbours& near) const;
  bool add_message(std::span<const Var> scope, int origin);

  const Network& network_;
  State state_;
  Cost top_ = forbidden, slack_ = 0;
  Queue pending_, removed_, risen_, unsupported_;
  Queue reduced_,
      changed_;  // functions that depend on a count: whose variables lost values; of which costs may be gathered
  Queue thin_;   // variables that may have few free neighbours
  bool raised_ = true;
  std::size_t patience_ = 0;            // for variables without existential support, in one propagation
  std::vector<int> support_, suspect_;  // of each variable; the function of the network that its last costs came from
  std::vector<int> hint_;               // of each shifted cost: a value of the other variable
  std::vector<double> weight_;
  std::vector<double> exchanged_;      // the weights after the last exchange
  std::vector<double> weight_of_all_;  // of each variable: the sum over its functions of the network
  std::vector<Cost> high_;             // of each variable: no value that is left costs more
  std::vector<std::pair<Var, Cost>> lowered_;
  std::vector<Cost> marginal_, amount_, need_, along_, nothing_;
  std::vector<std::vector<Cost>> lent_;
  Tally tally_;
  std::vector<int> open_;  // free positions of the function whose costs the tally has
  struct Axis {
    std::vector<std::size_t> offset;
    std::vector<Cost> cost;
  };
  std::vector<Axis> axes_;
  std::vector<std::size_t> digit_;

  // The minimum over the values of an eliminated variable as a function of others.
  struct Message {
    Function function;
    int origin = 0;  // function of the network whose conflicts are counted
  };
  struct Mark {
    std::size_t eliminated, killed, messages, cells, lowered;
  };
  struct Eliminated {
    Var var;
    std::size_t first, last;  // of the functions that went with it, among those killed
  };
  std::vector<Message> messages_;  // the first `message_count_` are in use
  std::size_t message_count_ = 0;
  std::vector<char> is_dead_;              // of each function
  std::vector<std::vector<Place>> added_;  // of each variable: its messages
  std::vector<Eliminated> eliminated_;
  std::vector<int> killed_;
  std::vector<Mark> marks_;
  std::vector<Cost> message_;
};

}  // namespace elimina::consistency
