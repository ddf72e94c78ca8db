// Shifts of costs in functions with several free variables besides the one that receives the costs.
#include <algorithm>

#include "propagator.hpp"

namespace elimina::consistency {

// Moves the unary costs of all other free variables into the function. Then moves back those that are not needed to
// shift the amounts (`amount_`) out of the function. Returns false, and moves nothing, if a shift would become too
// large.
bool Propagator::shift_all_unary_into(const Occurrence& occurrence) {
  const Function& f = function(occurrence.function);
  for (int k = 0; k < f.arity(); ++k) {
    if (k == occurrence.position) continue;
    for (const int x : state_.values(f.scope[k]))
      if (state_.shift(f, k)[x] - state_.unary(f.scope[k])[x] < -most_shifted) return false;
  }
  for (int k = 0; k < f.arity(); ++k) {
    const Var v = f.scope[k];
    lent_[k].clear();
    if (k == occurrence.position || !state_.is_free(v)) continue;
    for (const int x : state_.values(v)) {
      const Cost cost = state_.unary(v)[x];
      lent_[k].push_back(cost);
      if (cost == 0) continue;
      state_.shift_cell(f, k, x) -= cost;
      state_.unary_cell(v, x) = 0;
    }
  }
  // The remainder is computed as if the amounts were already shifted.
  for (const int x : state_.values(f.scope[occurrence.position]))
    state_.shift_cell(f, occurrence.position, x) += amount_[x];
  for (int k = 0; k < f.arity(); ++k) give_back(f, k);
  for (const int x : state_.values(f.scope[occurrence.position]))
    state_.shift_cell(f, occurrence.position, x) -= amount_[x];
  return true;
}

void Propagator::give_back(const Function& f, int k) {
  const std::vector<Cost>& lent = lent_[k];
  if (std::all_of(lent.begin(), lent.end(), [](Cost cost) { return cost == 0; })) return;
  const Var v = f.scope[k];
  marginal(f, k, state_.values(v), none);
  for (std::size_t i = 0; i < lent.size(); ++i) {
    const int x = state_.values(v)[i];
    const Cost back = std::clamp<Cost>(marginal_[i], 0, lent[i]);
    if (back == 0) continue;
    state_.shift_cell(f, k, x) += back;
    state_.unary_cell(v, x) = back;
  }
}

// Finds the least cost of a function with each of the values, plus the unary costs of the variables at the positions in
// `with_unary`.
void Propagator::marginal(const Function& f, int p, std::span<const int> values, std::uint64_t with_unary) {
  if (f.is_counted) return marginal_of_count(f, p, values, with_unary);
  int count = 0;
  std::size_t base = 0;
  Cost fixed = 0;
  for (int k = 0; k < f.arity(); ++k) {
    if (k == p) continue;
    const Var v = f.scope[k];
    const Cost* shift = state_.shift(f, k);
    if (!state_.is_free(v)) {
      base += f.stride[k] * state_.value(v);
      fixed -= shift[state_.value(v)];
      continue;
    }
    const Cost* unary = state_.unary(v);
    Axis& axis = axes_[count];
    axis.offset.clear();
    axis.cost.clear();
    for (const int x : state_.values(v)) {
      axis.offset.push_back(f.stride[k] * x);
      axis.cost.push_back((with_unary >> k & 1 ? unary[x] : 0) - shift[x]);
    }
    digit_[count++] = 0;
  }
  std::fill_n(marginal_.begin(), values.size(), 4 * forbidden);
  std::size_t offset = base;
  Cost sum = fixed;
  for (int k = 0; k < count; ++k) offset += axes_[k].offset[0], sum += axes_[k].cost[0];
  while (true) {
    const Cost* cells = f.cells() + offset;
    for (std::size_t i = 0; i < values.size(); ++i)
      marginal_[i] = std::min(marginal_[i], cells[f.stride[p] * values[i]] + sum);
    int k = count;
    while (k-- > 0) {
      const Axis& axis = axes_[k];
      offset -= axis.offset[digit_[k]];
      sum -= axis.cost[digit_[k]];
      if (++digit_[k] == axis.offset.size()) digit_[k] = 0;
      offset += axis.offset[digit_[k]];
      sum += axis.cost[digit_[k]];
      if (digit_[k] > 0) break;
    }
    if (k < 0) break;
  }
  for (std::size_t i = 0; i < values.size(); ++i) marginal_[i] -= state_.shift(f, p)[values[i]];
}

void Propagator::marginal_of_count(const Function& f, int p, std::span<const int> values, std::uint64_t with_unary) {
  load(f, p, with_unary);
  const auto index = static_cast<std::size_t>(std::find(open_.begin(), open_.end(), p) - open_.begin());
  for (std::size_t i = 0; i < values.size(); ++i)
    marginal_[i] = tally_.least(index, f.counts(p, values[i])) - state_.shift(f, p)[values[i]];
}

// Tallies the costs of a counted function and the unary costs of some variables. The variable at `position` counts as
// free, because it may have just lost all values but one.
void Propagator::load(const Function& f, int position, std::uint64_t with_unary) {
  tally_.start(f);
  open_.clear();
  for (int k = 0; k < f.arity(); ++k) {
    const Var v = f.scope[k];
    const Cost* shift = state_.shift(f, k);
    if (k != position && !state_.is_free(v)) {
      const int x = state_.value(v);
      tally_.add_value(f.counts(k, x), -shift[x]);
      continue;
    }
    const Cost* unary = with_unary >> k & 1 ? state_.unary(v) : nothing_.data();
    const int count_of_one = f.counts(k, 1);
    tally_.add(unary[count_of_one] - shift[count_of_one], unary[1 - count_of_one] - shift[1 - count_of_one]);
    open_.push_back(k);
  }
  tally_.rank();
}

// Shifts costs from a counted function to its free variables, after some of its variables have lost values. The
// supports of the other variables are not checked: that would take half of a node's time and save no nodes.
bool Propagator::pull_all(int number) {
  const Function& f = function(number);
  const int target = first_free(f);
  if (target < 0) return pull({number, 0});
  bool is_loaded = false;
  for (int k = 0; k < f.arity(); ++k) {
    if (k == target || !state_.is_free(f.scope[k])) continue;
    if (!is_loaded) load(f, k, none);
    const auto index = static_cast<std::size_t>(std::find(open_.begin(), open_.end(), k) - open_.begin());
    is_loaded = true;
    const Cost* shift = state_.shift(f, k);
    if (tally_.least(index, f.counts(k, 0)) <= shift[0] && tally_.least(index, f.counts(k, 1)) <= shift[1]) continue;
    if (!pull({number, k})) return false;
    is_loaded = false;
  }
  return true;
}

}  // namespace elimina::consistency
