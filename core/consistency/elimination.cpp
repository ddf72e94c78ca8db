// Elimination of variables with few free neighbours during a search (Larrosa, 2000).
#include <algorithm>
#include <array>
#include <optional>

#include "propagator.hpp"

namespace elimina::consistency {

namespace {

// Steps of a minimum over the values of a variable for all values of its neighbours; more would take longer than a node.
constexpr std::size_t most_steps = 1 << 12;

}  // namespace

// A function along a variable and its neighbours; its other variables have values.
struct Propagator::Part {
  const Cost* table;
  std::array<std::size_t, 3> stride;
  std::array<const Cost*, 3> shift;
  Cost fixed;

  Cost at(int x, int y, int z) const {
    return table[x * stride[0] + y * stride[1] + z * stride[2]] - shift[0][x] - shift[1][y] - shift[2][z] - fixed;
  }
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

// The neighbours of a variable that may have lost one.
void Propagator::wake_thin(Var v) {
  each_place(v, [&](const Place& place) {
    for (const Var u : function(place.function).scope)
      if (state_.is_free(u)) thin_.push(u);
    return true;
  });
}

// The free neighbours of a variable, or nothing if they are more than two.
std::optional<int> Propagator::find_neighbours(Var v, std::array<Var, 2>& found) const {
  int count = 0;
  const bool are_few = each_place(v, [&](const Place& place) {
    for (const Var u : function(place.function).scope) {
      if (u == v || !state_.is_free(u) || std::find(found.begin(), found.begin() + count, u) != found.begin() + count) continue;
      if (count == 2) return false;
      found[count++] = u;
    }
    return true;
  });
  return are_few ? std::optional(count) : std::nullopt;
}

Propagator::Part Propagator::part_of(const Function& f, const std::array<Var, 3>& along) const {
  Part part{f.cost.data(), {0, 0, 0}, {nothing_.data(), nothing_.data(), nothing_.data()}, 0};
  for (int k = 0; k < f.arity(); ++k) {
    const auto i = static_cast<std::size_t>(std::find(along.begin(), along.end(), f.scope[k]) - along.begin());
    if (i < along.size()) {
      part.stride[i] = f.stride[k];
      part.shift[i] = state_.shift(f, k);
    } else {
      const int x = state_.value(f.scope[k]);
      part.table += f.stride[k] * x;
      part.fixed += state_.shift(f, k)[x];
    }
  }
  return part;
}

// Replaces a variable with at most two free neighbours by its message to them. False: a conflict.
bool Propagator::eliminate(Var v) {
  if (!state_.is_free(v)) return true;
  std::array<Var, 2> near{-1, -1};
  const auto count = find_neighbours(v, near);
  if (!count) return true;
  std::size_t steps = static_cast<std::size_t>(state_.count(v));
  for (int i = 0; i < *count; ++i) steps *= static_cast<std::size_t>(state_.count(near[i]));
  if (steps > most_steps) return true;

  const std::array<Var, 3> along{v, near[0], near[1]};
  const std::size_t killed = killed_.size();
  std::vector<Part> parts;
  const auto take = [&](const Place& place) {
    parts.push_back(part_of(function(place.function), along));
    killed_.push_back(place.function);
    return true;
  };
  each_place(v, take);
  if (*count == 2) {
    // A function of the two neighbours becomes a part of the message.
    each_place(near[0], [&](const Place& place) {
      const Function& f = function(place.function);
      int q;
      const bool is_between = free_positions(f, place.position, &q) == 1 && f.scope[q] == near[1];
      return is_between ? take(place) : true;
    });
  }
  int origin = -1;
  for (std::size_t i = killed; i < killed_.size(); ++i) {
    is_dead_[killed_[i]] = 1;
    const int one = origin_of(killed_[i]);
    if (origin < 0 || weight_[one] > weight_[origin]) origin = one;
  }
  eliminated_.push_back({v, killed, killed_.size()});
  state_.retire(v);

  const Cost* unary = state_.unary(v);
  const auto least = [&](int y, int z) {
    Cost low = forbidden;
    for (const int x : state_.values(v)) {
      Cost sum = unary[x];
      for (const Part& part : parts)
        if ((sum += part.at(x, y, z)) >= low) break;
      low = std::min(low, sum);
    }
    return low >= forbidden / 2 ? forbidden : low;
  };
  for (int i = 0; i < *count; ++i) thin_.push(near[i]);
  if (*count == 0) {
    const Cost low = least(0, 0);
    if (over(low)) return fail(v);
    raised_ |= low > 0;
    state_.raise(low);
    return true;
  }
  if (*count == 1) {
    message_.clear();
    for (const int y : state_.values(near[0])) message_.push_back(least(y, 0));
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
  message_.clear();
  bool is_empty = true;
  for (const int y : state_.values(near[0])) {
    for (const int z : state_.values(near[1])) {
      message_.push_back(least(y, z));
      is_empty &= message_.back() == 0;
    }
  }
  return is_empty || add_message(near, origin);
}

// Makes a function of the message, and draws the conclusions.
bool Propagator::add_message(const std::array<Var, 2>& scope, int origin) {
  const int number = static_cast<int>(network_.functions.size() + message_count_);
  if (message_count_ == messages_.size()) messages_.emplace_back();
  Message& message = messages_[message_count_++];
  message.origin = origin;
  Function& f = message.function;
  const auto rows = static_cast<std::size_t>(network_.size[scope[0]]), columns = static_cast<std::size_t>(network_.size[scope[1]]);
  f.scope.assign(scope.begin(), scope.end());
  f.stride.assign({columns, 1});
  f.cost.resize(rows * columns);
  f.transposed.resize(rows * columns);
  std::size_t i = 0;
  for (const int y : state_.values(scope[0]))
    for (const int z : state_.values(scope[1])) f.cost[y * columns + z] = f.transposed[z * rows + y] = message_[i++];
  f.shift.assign({state_.cells(), state_.cells() + rows});
  state_.resize(state_.cells() + rows + columns);
  hint_.resize(std::max(hint_.size(), state_.cells()), 0);
  is_dead_.push_back(0);
  // The unary costs of a neighbour count once.
  bool is_fresh = true;
  each_place(scope[0], [&](const Place& place) {
    const auto& other = function(place.function).scope;
    return is_fresh = std::find(other.begin(), other.end(), scope[1]) == other.end();
  });
  for (int p = 0; p < 2; ++p) {
    const std::uint32_t own = std::uint32_t{1} << p;
    added_[scope[p]].push_back({{number, p}, is_fresh ? ~std::uint32_t{0} : own});
    unsupported_.push(scope[p]);
  }
  const int target = first_free(f);
  return gather({{number, target}}) && pull({{number, 1 - target}});
}

void Propagator::extend(std::vector<int>& value) const {
  for (std::size_t i = eliminated_.size(); i-- > 0;) {
    const auto [v, first, last] = eliminated_[i];
    Cost low = 4 * forbidden;
    int best = state_.values(v)[0];
    for (const int x : state_.values(v)) {
      value[v] = x;
      Cost sum = state_.unary(v)[x];
      for (std::size_t k = first; k < last && sum < low; ++k) {
        const Function& f = function(killed_[k]);
        sum += f.cost[f.cell(value)];
        for (int p = 0; p < f.arity(); ++p) sum -= state_.shift(f, p)[value[f.scope[p]]];
      }
      if (sum < low) low = sum, best = x;
    }
    value[v] = best;
  }
}

}  // namespace elimina::consistency
