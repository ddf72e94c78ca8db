#include "propagator.hpp"

#include <algorithm>

#include "rows.hpp"
#include "stop.hpp"

namespace elimina::consistency {

namespace {

// A function with three or more free variables is ignored while the remaining values of its variables make up more
// cells than this.
constexpr std::size_t most_cells = 1 << 12;

// A row is read as a whole if at least `least_row` values remain, and at least 1 / `row_share` of all values.
constexpr int least_row = 6, row_share = 6;

}  // namespace

Propagator::Propagator(const Network& network)
    : network_(network), state_(network), pending_(network.count()), removed_(network.count()), risen_(network.count()),
      unsupported_(network.count()), reduced_(static_cast<int>(network.functions.size())),
      changed_(static_cast<int>(network.functions.size())), thin_(network.count()), support_(network.size.size(), 0),
      suspect_(network.size.size(), -1), hint_(network.cells.size(), 0), weight_(network.functions.size(), 1.0),
      exchanged_(weight_), high_(network.size.size(), forbidden), is_dead_(network.functions.size(), 0),
      added_(network.size.size()) {
  int largest_domain = 1, arity = most_neighbours;
  for (const int n : network.size) largest_domain = std::max(largest_domain, n);
  for (const Function& f : network.functions) arity = std::max(arity, f.arity());
  marginal_.resize(largest_domain);
  amount_.resize(largest_domain);
  need_.resize(largest_domain);
  along_.resize(largest_domain);
  nothing_.resize(largest_domain);
  axes_.resize(arity);
  digit_.resize(arity);
  lent_.resize(arity);
  add_weights();
  for (Var v = 0; v < network.count(); ++v) {
    pending_.push(v);
    removed_.push(v);
    risen_.push(v);
    unsupported_.push(v);
  }
}

Propagator::View Propagator::view(const Function& f, int p, int q) const {
  View result{f.cells(), f.stride[p], f.stride[q], 0, state_.shift(f, p), state_.shift(f, q), f.scope[q]};
  if (f.arity() == 2) {
    if (p == 1) result.table = f.transposed.data(), result.major = network_.size[f.scope[0]], result.minor = 1;
    return result;
  }
  for (int k = 0; k < f.arity(); ++k) {
    if (k == p || k == q) continue;
    const int x = state_.value(f.scope[k]);
    result.table += f.stride[k] * x;
    result.fixed += state_.shift(f, k)[x];
  }
  return result;
}

// Returns the number of free positions other than `except`, and sets `other` to one of them (to any other position if
// none is free).
int Propagator::free_positions(const Function& f, int except, int* other) const {
  *other = except == 0 ? 1 : 0;
  if (f.arity() == 2) return state_.is_free(f.scope[*other]);
  int count = 0;
  for (int k = 0; k < f.arity(); ++k)
    if (k != except && state_.is_free(f.scope[k])) ++count, *other = k;
  return count;
}

bool Propagator::is_wide(const Function& f) const {
  if (f.is_counted) return false;
  std::size_t cells = 1;
  for (const Var v : f.scope)
    if ((cells *= static_cast<std::size_t>(state_.count(v))) > most_cells) return true;
  return false;
}

int Propagator::first_free(const Function& f) const {
  int result = -1;
  for (int k = 0; k < f.arity(); ++k)
    if (state_.is_free(f.scope[k]) && (result < 0 || f.scope[k] < f.scope[result])) result = k;
  return result;
}

bool Propagator::decide(const Decision& decision) {
  const auto [v, value, rule] = decision;
  const int before = state_.count(v);
  if (rule == Rule::is) {
    if (!state_.has(v, value)) return false;
    state_.assign(v, value);
  } else {
    for (int k = before; k-- > 0;) {
      const int x = state_.values(v)[k];
      if (decision.allows(x)) continue;
      if (!state_.is_free(v)) return false;
      state_.remove(v, x);
    }
  }
  if (state_.count(v) == before) return true;
  suspect_[v] = -1;
  removed_.push(v);
  unsupported_.push(v);
  pending_.push(v);
  return true;
}

bool Propagator::propagate(Cost top, Cost slack) {
  top_ = top;
  slack_ = slack;
  raised_ = true;
  patience_ = 1000 + 20 * network_.size.size();
  bool possible = state_.constant() < top_;
  while (possible && (possible = settle())) {
    check_stop();
    if (!removed_.empty()) possible = after_removals(removed_.pop_first());
    else if (!risen_.empty()) possible = after_rise(risen_.pop_last());
    else if (!reduced_.empty()) possible = pull_all(reduced_.pop_first());
    else if (!changed_.empty()) possible = gather_first(changed_.pop_first(), -1);
    else if (!unsupported_.empty()) possible = exist(unsupported_.pop_first());
    else if (!thin_.empty() && state_.depth() > 0) possible = eliminate(thin_.pop_last());
    else return true;
  }
  forget();
  return false;
}

void Propagator::forget() {
  pending_.clear();
  removed_.clear();
  risen_.clear();
  unsupported_.clear();
  reduced_.clear();
  changed_.clear();
  thin_.clear();
}

// Makes variables node consistent; returns false at a conflict.
bool Propagator::settle() {
  while (true) {
    while (!pending_.empty())
      if (!normalise(pending_.pop_first())) return false;
    if (!raised_) return true;
    raised_ = false;
    // Backwards, because a variable that loses all values but one changes places with the last free one.
    for (std::size_t i = state_.free().size(); i-- > 0;)
      if (const Var v = state_.free()[i]; over(high_[v]) && !prune(v)) return false;
  }
}

bool Propagator::normalise(Var v) {
  const Cost* unary = state_.unary(v);
  Cost low = forbidden;
  for (const int x : state_.values(v)) low = std::min(low, unary[x]);
  if (low > 0) {
    if (over(low)) return fail(v);
    for (const int x : state_.values(v)) state_.unary_cell(v, x) -= low;
    state_.raise(low);
    raised_ = true;
  }
  return prune(v);
}

bool Propagator::prune(Var v) {
  if (!over(high_[v])) return true;
  const Cost* unary = state_.unary(v);
  Cost high = 0;
  for (int k = state_.count(v); k-- > 0;) {
    const int x = state_.values(v)[k];
    if (!over(unary[x])) high = std::max(high, unary[x]);
    else if (!drop(v, x)) return false;
  }
  lower(v, high);
  return true;
}

void Propagator::lower(Var v, Cost high) {
  lowered_.push_back({v, high_[v]});
  high_[v] = high;
}

bool Propagator::drop(Var v, int x) {
  if (!state_.is_free(v)) return fail(v);
  state_.remove(v, x);
  removed_.push(v);
  pending_.push(v);
  if (x == support_[v]) unsupported_.push(v);
  return true;
}

void Propagator::rise(Var v, int x, Cost by, int function) {
  Cost& unary = state_.unary_cell(v, x);
  if (unary == 0) pending_.push(v);
  if (unary <= slack_ && unary + by > slack_) risen_.push(v);
  unary += by;
  high_[v] = std::max(high_[v], unary);
  suspect_[v] = function;
}

// Queues the free variables of a function, because they may have lost their supports.
void Propagator::wake_others(const Occurrence& occurrence) {
  for (const Var v : function(occurrence.function).scope)
    if (state_.is_free(v)) unsupported_.push(v);
}

bool Propagator::after_removals(Var v) {
  if (!state_.is_free(v)) wake_thin(v);
  return each_place(v, [&](const Occurrence& occurrence) {
    const Function& f = function(occurrence.function);
    if (f.is_counted) return reduced_.push(occurrence.function), changed_.push(occurrence.function), true;
    wake_others(occurrence);
    const int target = first_free(f);
    if (target < 0) return pull({occurrence.function, occurrence.position == 0 ? 1 : 0});
    for (int k = 0; k < f.arity(); ++k) {
      if (k == occurrence.position || !state_.is_free(f.scope[k])) continue;
      if (!(k == target ? gather({occurrence.function, k}) : pull({occurrence.function, k}))) return false;
    }
    return true;
  });
}

bool Propagator::after_rise(Var v) {
  if (!state_.is_free(v)) return true;
  return each_place(v, [&](const Occurrence& occurrence) {
    wake_others(occurrence);
    return gather_first(occurrence.function, occurrence.position);
  });
}

// Shifts costs to the first free variable of a function, unless this is at position `except`.
bool Propagator::gather_first(int number, int except) {
  const int target = first_free(function(number));
  return target < 0 || target == except || gather({number, target});
}

// Shifts costs to a variable if each of its values would cost something, directly or through its neighbours. Returns
// false after a conflict.
bool Propagator::exist(Var v) {
  if (!state_.is_free(v)) return true;
  if (state_.has(v, support_[v]) && is_supported(v, support_[v])) return true;
  for (const int x : state_.values(v)) {
    if (x != support_[v] && is_supported(v, x)) {
      support_[v] = x;
      return true;
    }
  }
  // The number of these shifts is limited, because the constant may rise very slowly.
  if (patience_ == 0) return true;
  --patience_;
  for (const int x : state_.values(v))
    if (state_.unary(v)[x] == 0) support_[v] = x;
  if (!each_place(v, [&](const Occurrence& occurrence) { return gather(occurrence); })) return false;
  pending_.push(v);
  return true;
}

bool Propagator::is_supported(Var v, int x) {
  Cost total = state_.unary(v)[x];
  each_place(v, [&](const Occurrence& occurrence) { return total <= slack_ && (total += least(occurrence, x), true); });
  return total <= slack_;
}

// Returns the least cost of a function in which the occurrence's variable has the value x. The unary costs of the
// function's other variables are added, unless an earlier function of the variable adds them.
Cost Propagator::least(const Occurrence& occurrence, int x) {
  const Function& f = function(occurrence.function);
  int q;
  if (free_positions(f, occurrence.position, &q) > 1) {
    if (is_wide(f)) return 0;
    marginal(f, occurrence.position, {&x, 1}, occurrence.fresh);
    return marginal_[0];
  }
  const View t = view(f, occurrence.position, q);
  return least(t, f.shift[occurrence.position] + x, x,
               occurrence.fresh >> q & 1 ? state_.unary(t.other) : nothing_.data());
}

// Returns the least sum of a cost in the row of value x and the cost in `added` at the same position. The position of
// the last minimum is tried first, because it often has the minimum again.
Cost Propagator::least(const View& t, std::size_t cell, int x, const Cost* added) {
  const Cost row = t.row(x);
  int& hint = hint_[cell];
  if (is_least(t, hint, x, added)) return 0;
  Cost low = 4 * forbidden;
  for (const int y : state_.values(t.other)) {
    const Cost cost = t.at(x, y) + added[y];
    if (cost >= low) continue;
    low = cost;
    hint = y;
    if (low + row <= 0) return 0;
  }
  return low + row;
}

bool Propagator::is_dense(const View& t) const {
  const int count = state_.count(t.other);
  return t.minor == 1 && count >= least_row && row_share * count >= network_.size[t.other];
}

// Writes the costs that `least_of_row` adds to a row, one for each value of the other variable. Removed values get
// costs that are too high for a minimum.
void Propagator::write_costs(const View& t, const Cost* added) {
  std::fill_n(along_.begin(), network_.size[t.other], 2 * forbidden);
  for (const int y : state_.values(t.other)) along_[y] = added[y] - t.other_shift[y];
}

// Returns the least cost in a whole row plus the costs from `write_costs`; at least 0.
Cost Propagator::least_of_row(const View& t, int& hint, int x) {
  const int size = network_.size[t.other];
  const Cost* row = t.table + x * t.major;
  const Cost row_cost = t.row(x);
  if (hint < size && row[hint] + along_[hint] + row_cost == 0) return 0;
  const Cost low = least_sum(row, along_.data(), size);
  hint = place_of_sum(row, along_.data(), low);
  return std::max<Cost>(0, low + row_cost);
}

// Finds the least cost of a function with each value of the variable, as amounts to be shifted; values that cost too
// much are removed.
Propagator::Found Propagator::find(const Occurrence& occurrence, bool with_unary) {
  const Function& f = function(occurrence.function);
  const Var v = f.scope[occurrence.position];
  int q;
  const bool many = free_positions(f, occurrence.position, &q) > 1;
  if (many) {
    if (is_wide(f)) return Found::nothing;
    marginal(f, occurrence.position, state_.values(v), with_unary ? all : none);
  }
  const View t = many ? View{} : view(f, occurrence.position, q);
  const Cost* added = many || !with_unary ? nothing_.data() : state_.unary(t.other);
  const bool is_row = !many && is_dense(t);
  if (is_row) write_costs(t, added);
  const std::size_t first = f.shift[occurrence.position];
  const int* values = state_.values(v).data();
  const Cost *unary = state_.unary(v), *shifted = state_.shift(f, occurrence.position);
  Found projection = Found::nothing;
  for (int k = state_.count(v); k-- > 0;) {
    const int x = values[k];
    const Cost low = many     ? marginal_[k]
                     : is_row ? least_of_row(t, hint_[first + x], x)
                              : least(t, first + x, x, added);
    amount_[x] = 0;
    if (low <= 0) continue;
    if (over(unary[x] + low)) {
      suspect_[v] = origin_of(occurrence.function);
      if (!drop(v, x)) return Found::conflict;
    } else if (shifted[x] + low <= most_shifted) {
      amount_[x] = low;
      projection = Found::something;
    }
  }
  return projection;
}

bool Propagator::pull(const Occurrence& occurrence) {
  const Found projection = find(occurrence, false);
  if (projection == Found::something) project(occurrence);
  return projection != Found::conflict;
}

// Shifts the needed part of the other variables' unary costs into the function, and then the function's costs to the
// variable; returns false after a conflict.
bool Propagator::gather(const Occurrence& occurrence) {
  const Found projection = find(occurrence, true);
  const Function& f = function(occurrence.function);
  int q;
  if (projection == Found::something &&
      (free_positions(f, occurrence.position, &q) > 1 ? shift_all_unary_into(occurrence)
                                                      : shift_unary_into(occurrence, q)))
    project(occurrence);
  return projection != Found::conflict;
}

bool Propagator::shift_unary_into(const Occurrence& occurrence, int q) {
  const Function& f = function(occurrence.function);
  const View t = view(f, occurrence.position, q);
  const Cost* unary = state_.unary(t.other);
  const bool is_row = is_dense(t);
  if (is_row) {
    const int size = network_.size[t.other];
    std::copy_n(t.other_shift, size, need_.begin());
    for (Cost& need : std::span(need_.data(), static_cast<std::size_t>(size))) need = -need;
    for (const int x : state_.values(f.scope[occurrence.position]))
      if (amount_[x] > 0) raise_to(need_.data(), amount_[x] - t.row(x), t.table + x * t.major, size);
  }
  for (const int y : state_.values(t.other)) {
    need_[y] = is_row && unary[y] > 0 ? need_[y] + t.other_shift[y] : 0;
    if (unary[y] == 0) continue;
    if (!is_row)
      for (const int x : state_.values(f.scope[occurrence.position]))
        if (amount_[x] > 0) need_[y] = std::max(need_[y], amount_[x] - t.at(x, y) - t.row(x));
    if (t.other_shift[y] - need_[y] < -most_shifted) return false;
  }
  for (const int y : state_.values(t.other)) {
    if (need_[y] == 0) continue;
    state_.unary_cell(t.other, y) -= need_[y];
    state_.shift_cell(f, q, y) -= need_[y];
  }
  return true;
}

void Propagator::project(const Occurrence& occurrence) {
  const Function& f = function(occurrence.function);
  const Var v = f.scope[occurrence.position];
  for (const int x : state_.values(v)) {
    if (amount_[x] <= 0) continue;
    state_.shift_cell(f, occurrence.position, x) += amount_[x];
    rise(v, x, amount_[x], origin_of(occurrence.function));
  }
}

Cost Propagator::at(const std::vector<int>& value) const {
  Cost total = state_.constant();
  for (Var v = 0; v < network_.count(); ++v) total += state_.unary(v)[value[v]];
  for (const Function& f : network_.functions) {
    std::size_t cell = f.base;
    for (int k = 0; k < f.arity(); ++k) {
      cell += f.stride[k] * value[f.scope[k]];
      total -= state_.shift(f, k)[value[f.scope[k]]];
    }
    total += f.cost[cell];
    if (total >= forbidden / 2) return forbidden;
  }
  return total;
}

}  // namespace elimina::consistency
