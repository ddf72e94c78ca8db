// Elimination of variables with few free neighbours during a search (Larrosa, 2000).
#include <algorithm>
#include <array>
#include <optional>

#include "propagator.hpp"

namespace elimina::consistency {

namespace {

// Largest number of steps of an elimination, one for each combination of values of the variable and its neighbours;
// more would take longer than a node.
constexpr std::size_t most_steps = 1 << 12;

}  // namespace

// A function as a table over a variable and its free neighbours; the function's other variables have values.
struct Propagator::Term {
  const Cost* table;
  std::array<std::size_t, 1 + most_neighbours> stride;
  std::array<const Cost*, 1 + most_neighbours> shift;
  Cost fixed;

  // Moves to the row for these values of the neighbours. A row has the cost of each value of the variable.
  void enter(const std::array<int, most_neighbours>& value) {
    row = table;
    less = fixed;
    for (int i = 0; i < most_neighbours; ++i) {
      row += static_cast<std::size_t>(value[i]) * stride[1 + i];
      less += shift[1 + i][value[i]];
    }
  }
  Cost at(int x) const { return row[static_cast<std::size_t>(x) * stride[0]] - shift[0][x] - less; }

  const Cost* row = nullptr;
  Cost less = 0;
};

void Propagator::mark() {
  if (state_.depth() == 0)
    for (const Var v : state_.free()) thin_.push(v);
  marks_.push_back({eliminated_.size(), killed_.size(), message_count_, state_.cells(), lowered_.size()});
  state_.mark();
}

void Propagator::undo() {
  state_.undo();
  const Mark& mark = marks_.back();
  for (; lowered_.size() > mark.lowered; lowered_.pop_back()) high_[lowered_.back().first] = lowered_.back().second;
  eliminated_.resize(mark.eliminated);
  for (std::size_t i = mark.killed; i < killed_.size(); ++i) is_dead_[killed_[i]] = 0;
  killed_.resize(mark.killed);
  while (message_count_ > mark.messages) {
    for (const Var v : messages_[--message_count_].function.scope) added_[v].pop_back();
    is_dead_.pop_back();
  }
  state_.resize(mark.cells);
  marks_.pop_back();
}

// Queues the neighbours of a variable that is no longer free: they have lost a free neighbour.
void Propagator::wake_thin(Var v) {
  each_place(v, [&](const Occurrence& occurrence) {
    std::array<Var, 1 + most_neighbours> neighbours;
    int count = 0;
    for (const Var u : function(occurrence.function).scope) {
      if (!state_.is_free(u)) continue;
      if (count > most_neighbours) return true;
      neighbours[count++] = u;
    }
    for (int i = 0; i < count; ++i) thin_.push(neighbours[i]);
    return true;
  });
}

// Lists the free neighbours of a variable, and returns their number; nullopt if they are too many.
std::optional<int> Propagator::find_neighbours(Var v, Neighbours& neighbours) const {
  int count = 0;
  const bool are_few = each_place(v, [&](const Occurrence& occurrence) {
    for (const Var u : function(occurrence.function).scope) {
      if (u == v || !state_.is_free(u) ||
          std::find(neighbours.begin(), neighbours.begin() + count, u) != neighbours.begin() + count)
        continue;
      if (count == most_neighbours) return false;
      neighbours[count++] = u;
    }
    return true;
  });
  return are_few ? std::optional(count) : std::nullopt;
}

Propagator::Term Propagator::term_of(const Function& f, Var v, const Neighbours& near) const {
  std::array<Var, 1 + most_neighbours> along{v};
  std::copy(near.begin(), near.end(), along.begin() + 1);
  Term term{.table = f.cells(), .stride = {}, .shift = {}, .fixed = 0};
  term.shift.fill(nothing_.data());
  for (int k = 0; k < f.arity(); ++k) {
    const auto i = static_cast<std::size_t>(std::find(along.begin(), along.end(), f.scope[k]) - along.begin());
    if (i < along.size()) {
      term.stride[i] = f.stride[k];
      term.shift[i] = state_.shift(f, k);
    } else {
      const int x = state_.value(f.scope[k]);
      term.table += f.stride[k] * x;
      term.fixed += state_.shift(f, k)[x];
    }
  }
  return term;
}

// Replaces a free variable by its message to its free neighbours, if they are few and this takes few steps. Returns
// false after a conflict.
bool Propagator::eliminate(Var v) {
  if (!state_.is_free(v)) return true;
  Neighbours near;
  near.fill(-1);
  const auto count = find_neighbours(v, near);
  if (!count) return true;
  std::size_t steps = static_cast<std::size_t>(state_.count(v));
  for (int i = 0; i < *count; ++i) steps *= static_cast<std::size_t>(state_.count(near[i]));
  if (steps > most_steps) return true;

  const std::size_t killed = killed_.size();
  std::vector<Term> terms;
  const auto add_term = [&](const Occurrence& occurrence) {
    terms.push_back(term_of(function(occurrence.function), v, near));
    killed_.push_back(occurrence.function);
    return true;
  };
  each_place(v, add_term);
  if (*count > 1) {
    // A function whose free variables are exactly the neighbours is added to the message.
    each_place(near[0], [&](const Occurrence& occurrence) {
      const auto& scope = function(occurrence.function).scope;
      int free_variables = 0;
      for (const Var u : scope) {
        if (!state_.is_free(u)) continue;
        if (std::find(near.begin(), near.end(), u) == near.end()) return true;
        ++free_variables;
      }
      return free_variables == *count ? add_term(occurrence) : true;
    });
  }
  int origin = -1;
  for (std::size_t i = killed; i < killed_.size(); ++i) {
    is_dead_[killed_[i]] = 1;
    const int candidate = origin_of(killed_[i]);
    if (origin < 0 || weight_[candidate] > weight_[origin]) origin = candidate;
  }
  eliminated_.push_back({v, killed, killed_.size()});
  state_.retire(v);

  const Cost* unary = state_.unary(v);
  std::array<int, most_neighbours> value{}, digit{};
  message_.clear();
  bool is_empty = true;
  while (true) {
    for (int i = 0; i < *count; ++i) value[i] = state_.values(near[i])[digit[i]];
    for (Term& term : terms) term.enter(value);
    Cost low = forbidden;
    for (const int x : state_.values(v)) {
      Cost sum = unary[x];
      for (const Term& term : terms)
        if ((sum += term.at(x)) >= low) break;
      low = std::min(low, sum);
    }
    message_.push_back(low >= forbidden / 2 ? forbidden : low);
    is_empty &= low == 0;
    int i = *count;
    while (i-- > 0 && ++digit[i] == state_.count(near[i])) digit[i] = 0;
    if (i < 0) break;
  }
  for (int i = 0; i < *count; ++i) thin_.push(near[i]);
  if (*count == 0) {
    if (over(message_[0])) return fail(v);
    raised_ |= message_[0] > 0;
    state_.raise(message_[0]);
    return true;
  }
  if (*count == 1) {
    for (int k = state_.count(near[0]); k-- > 0;) {
      const int y = state_.values(near[0])[k];
      if (message_[k] == 0) continue;
      if (!over(state_.unary(near[0])[y] + message_[k])) {
        rise(near[0], y, message_[k], origin);
        continue;
      }
      suspect_[near[0]] = origin;
      if (!drop(near[0], y)) return false;
    }
    return true;
  }
  return is_empty || add_message({near.data(), static_cast<std::size_t>(*count)}, origin);
}

// Makes the message a function, and propagates it; returns false after a conflict.
bool Propagator::add_message(std::span<const Var> scope, int origin) {
  const int number = static_cast<int>(network_.functions.size() + message_count_);
  if (message_count_ == messages_.size()) messages_.emplace_back();
  Message& message = messages_[message_count_++];
  message.origin = origin;
  Function& f = message.function;
  const int arity = static_cast<int>(scope.size());
  f.scope.assign(scope.begin(), scope.end());
  f.stride.resize(scope.size());
  f.shift.resize(scope.size());
  std::size_t size = 1;
  for (int p = arity; p-- > 0;) {
    f.stride[p] = size;
    size *= static_cast<std::size_t>(network_.size[scope[p]]);
  }
  for (int p = 0; p < arity; ++p) {
    f.shift[p] = state_.cells();
    state_.resize(state_.cells() + static_cast<std::size_t>(network_.size[scope[p]]));
  }
  f.cost.resize(size);
  std::array<int, most_neighbours> digit{};
  for (const Cost cost : message_) {
    std::size_t cell = 0;
    for (int p = 0; p < arity; ++p) cell += f.stride[p] * static_cast<std::size_t>(state_.values(scope[p])[digit[p]]);
    f.cost[cell] = cost;
    int p = arity;
    while (p-- > 0 && ++digit[p] == state_.count(scope[p])) digit[p] = 0;
  }
  f.transpose(network_.size);
  hint_.resize(std::max(hint_.size(), state_.cells()), 0);
  is_dead_.push_back(0);
  for (int p = 0; p < arity; ++p) {
    // The unary costs of a neighbour count only once.
    std::uint64_t fresh = all;
    each_place(scope[p], [&](const Occurrence& occurrence) {
      const auto& other = function(occurrence.function).scope;
      for (int k = 0; k < arity; ++k)
        if (k != p && std::find(other.begin(), other.end(), scope[k]) != other.end()) fresh &= ~(std::uint64_t{1} << k);
      return true;
    });
    added_[scope[p]].push_back({{number, p}, fresh});
    unsupported_.push(scope[p]);
  }
  const int target = first_free(f);
  if (!gather({{number, target}})) return false;
  for (int p = 0; p < arity; ++p)
    if (p != target && state_.is_free(scope[p]) && !pull({{number, p}})) return false;
  return true;
}

void Propagator::extend(std::vector<int>& value) const {
  for (std::size_t i = eliminated_.size(); i-- > 0;) {
    const Var v = eliminated_[i].var;
    Cost low = 4 * forbidden;
    int best = state_.values(v)[0];
    for (const int x : state_.values(v)) {
      value[v] = x;
      const Cost sum = cost_below(eliminated_[i], value, low);
      if (sum < low) low = sum, best = x;
    }
    value[v] = best;
  }
}

void Propagator::list_costs(std::size_t rank, std::vector<int>& value, std::vector<std::pair<int, Cost>>& costs) const {
  const Eliminated& eliminated = eliminated_[rank];
  for (const int x : state_.values(eliminated.var)) {
    value[eliminated.var] = x;
    costs.emplace_back(x, cost_below(eliminated, value, forbidden));
  }
}

// Returns the unary cost of an eliminated variable's value plus its costs in the functions that the message has
// replaced; stops adding once the sum reaches the limit.
Cost Propagator::cost_below(const Eliminated& eliminated, const std::vector<int>& value, Cost limit) const {
  Cost sum = state_.unary(eliminated.var)[value[eliminated.var]];
  for (std::size_t k = eliminated.first; k < eliminated.last && sum < limit; ++k) {
    const Function& f = function(killed_[k]);
    sum += f.at(value);
    for (int p = 0; p < f.arity(); ++p) sum -= state_.shift(f, p)[value[f.scope[p]]];
  }
  return sum;
}

}  // namespace elimina::consistency
