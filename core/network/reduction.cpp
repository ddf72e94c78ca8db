#include "network/reduction.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

#include "stop.hpp"

namespace elimina::network {

namespace {

constexpr std::size_t most_neighbours = 3;
constexpr std::size_t most_cells = 1 << 18;  // largest number of cells of a bucket, which take about a millisecond
// Largest number of cells of a function to which variables are added: soft local consistency reads no larger ones.
constexpr std::size_t most_joined = 1 << 12;
constexpr std::size_t most_functions = 64;  // largest number of functions of a variable to be assigned or replaced

std::size_t cells_of(const std::vector<int>& size, const std::vector<Var>& scope) {
  std::size_t cells = 1;
  for (const Var v : scope) {
    cells *= static_cast<std::size_t>(size[v]);
    if (cells > most_cells) return cells;
  }
  return cells;
}

// Returns the strides of a function along a scope; 0 for variables that the function lacks.
std::vector<std::size_t> strides(const Function& f, const std::vector<Var>& scope) {
  std::vector<std::size_t> strides(scope.size(), 0);
  for (std::size_t k = 0; k < scope.size(); ++k)
    for (int p = 0; p < f.arity(); ++p)
      if (f.scope[p] == scope[k]) strides[k] = f.stride[p];
  return strides;
}

std::size_t offset(const std::vector<int>& digit, const std::vector<std::size_t>& stride) {
  return std::inner_product(digit.begin(), digit.end(), stride.begin(), std::size_t{0});
}

// True if the function does not depend on the variable at position `p`.
bool is_independent(const Function& f, int p, int size) {
  const std::size_t step = f.stride[p], block = step * static_cast<std::size_t>(size);
  for (std::size_t start = 0; start < f.cost.size(); start += block)
    for (std::size_t k = start + step; k < start + block; ++k)
      if (f.cost[k] != f.cost[k - step]) return false;
  return true;
}

}  // namespace

class Reduction::Work {
 public:
  Work(const Network& network, const std::vector<Var>& order)
      : network_{network.size, {}, network.constant, network.upper}, touching_(network.size.size()),
        unary_(network.size.size()), is_waiting_(network.size.size(), 1), is_gone_(network.size.size(), 0),
        waiting_(order.begin(), order.end()), remaining_(network.size.size()) {
    for (Var v = 0; v < network.count(); ++v) unary_[v].assign(static_cast<std::size_t>(network.size[v]), 0);
    for (const Function& f : network.functions) add(f);
  }

  void run(std::vector<Eliminated>& eliminated) {
    while (!waiting_.empty() && remaining_ > 1) {
      check_stop();
      const Var v = waiting_.front();
      waiting_.pop_front();
      is_waiting_[v] = 0;
      if (auto step = eliminate(v)) {
        is_gone_[v] = 1;
        --remaining_;
        eliminated.push_back(std::move(*step));
      }
    }
  }

  // Lists the remaining variables, and returns their network.
  Network rest(std::vector<Var>& variables) {
    std::vector<Var> number(network_.size.size(), -1);
    Network result{{}, {}, network_.constant, network_.upper};
    for (Var v = 0; v < network_.count(); ++v) {
      if (is_gone_[v]) continue;
      number[v] = result.count();
      variables.push_back(v);
      result.size.push_back(network_.size[v]);
    }
    for (const Var v : variables)
      if (std::any_of(unary_[v].begin(), unary_[v].end(), [](Cost c) { return c > 0; }))
        result.add_function({number[v]}, std::move(unary_[v]));
    for (Function& f : network_.functions) {
      if (f.cost.empty()) continue;
      for (Var& v : f.scope) v = number[v];
      result.functions.push_back(std::move(f));
    }
    return result;
  }

 private:
  std::optional<Eliminated> eliminate(Var v) {
    if (auto step = assign(v)) return step;
    if (auto step = replace(v)) return step;
    return sum_out(v);
  }

  // Eliminates a variable with exactly one allowed value; returns nullopt if the variable has none or several, or too
  // many functions.
  std::optional<Eliminated> assign(Var v) {
    int value = -1;
    for (int x = 0; x < network_.size[v]; ++x) {
      if (unary_[v][x] >= forbidden) continue;
      if (value >= 0) return std::nullopt;
      value = x;
    }
    if (value < 0 || functions(v).size() > most_functions) return std::nullopt;
    network_.constant = network::add(network_.constant, unary_[v][value]);
    for (const int i : functions(v)) put(v, -1, {value}, remove(i));
    return Eliminated{v, {}, {value}};
  }

  // Replaces a variable by a neighbour that determines it; returns nullopt if no neighbour does, a function would
  // become too large, or the variable has too many functions.
  std::optional<Eliminated> replace(Var v) {
    if (functions(v).size() > most_functions) return std::nullopt;
    for (const int i : functions(v)) {
      const Function& f = network_.functions[i];
      if (f.arity() != 2) continue;
      const Var u = f.scope[0] == v ? f.scope[1] : f.scope[0];
      const auto value = determined(f, v, u);
      if (value.empty() || !may_replace(v, u)) continue;
      std::vector<Cost> moved(value.size());
      for (std::size_t y = 0; y < value.size(); ++y) moved[y] = value[y] < 0 ? forbidden : unary_[v][value[y]];
      std::vector<int> best(value);
      for (int& x : best) x = std::max(x, 0);
      for (const int k : functions(v)) put(v, u, best, remove(k));
      add_unary(u, moved);
      return Eliminated{v, {u}, std::move(best)};
    }
    return std::nullopt;
  }

  // Returns, for each value of u, the only value of v that f allows with it; -1 if f allows none. The list is empty if
  // f allows several values of v with a value of u.
  std::vector<int> determined(const Function& f, Var v, Var u) const {
    const auto stride = strides(f, {v, u});
    std::vector<int> value(static_cast<std::size_t>(network_.size[u]), -1);
    for (int y = 0; y < network_.size[u]; ++y) {
      if (unary_[u][y] >= forbidden) continue;
      for (int x = 0; x < network_.size[v]; ++x) {
        if (unary_[v][x] >= forbidden || f.cost[x * stride[0] + y * stride[1]] >= forbidden) continue;
        if (value[y] >= 0) return {};
        value[y] = x;
      }
    }
    return value;
  }

  bool may_replace(Var v, Var u) {
    for (const int i : functions(v)) {
      const auto scope = replaced(network_.functions[i].scope, v, u);
      if (cells_of(network_.size, scope) > std::max(most_joined, network_.functions[i].cost.size())) return false;
    }
    return true;
  }

  // Returns the scope with u in the place of v; without v if u is -1 or already in the scope.
  static std::vector<Var> replaced(const std::vector<Var>& scope, Var v, Var u) {
    std::vector<Var> result;
    const bool is_there = u < 0 || std::find(scope.begin(), scope.end(), u) != scope.end();
    for (const Var w : scope)
      if (w != v) result.push_back(w);
      else if (!is_there) result.push_back(u);
    return result;
  }

  // Adds the function f without v: v takes `value[y]` for each value y of u, or `value[0]` if u is -1.
  void put(Var v, Var u, const std::vector<int>& value, const Function& f) {
    const std::vector<Var> scope = replaced(f.scope, v, u);
    const auto stride = strides(f, scope);
    const std::size_t stride_of_v = strides(f, {v})[0];
    const auto axis = static_cast<std::size_t>(std::find(scope.begin(), scope.end(), u) - scope.begin());
    std::vector<Cost> cost;
    cost.reserve(cells_of(network_.size, scope));
    for_each_cell(network_.size, scope, [&](const std::vector<int>& digit) {
      cost.push_back(
          f.cost[offset(digit, stride) + stride_of_v * static_cast<std::size_t>(value[u < 0 ? 0 : digit[axis]])]);
    });
    Network single{network_.size, {}, 0, 0};
    single.add_function(scope, std::move(cost));
    if (single.functions.empty()) network_.constant = network::add(network_.constant, single.constant);
    else add(std::move(single.functions[0]));
  }

  // Eliminates a variable with few neighbours: the minimum over its values is a function of the neighbours. Returns
  // nullopt if the variable has more neighbours, or the bucket too many cells.
  std::optional<Eliminated> sum_out(Var v) {
    const std::vector<Var> scope = neighbours(v);
    const auto size = static_cast<std::size_t>(network_.size[v]);
    const std::size_t max_cells = scope.size() > 2 ? most_joined : most_cells;
    if (scope.size() > most_neighbours || cells_of(network_.size, scope) > max_cells / size) return std::nullopt;
    struct Table {
      Function function;
      std::vector<std::size_t> stride;  // strides along the scope
      std::size_t stride_of_v;          // stride along the variable
    };
    std::vector<Table> tables;
    for (const int i : functions(v)) {
      Function f = remove(i);
      if (f.cost.empty()) continue;
      auto stride = strides(f, scope);
      const std::size_t stride_of_v = strides(f, {v})[0];
      tables.push_back({std::move(f), std::move(stride), stride_of_v});
    }
    Eliminated step{v, scope, {}};
    std::vector<Cost> message, sum(size);
    for_each_cell(network_.size, scope, [&](const std::vector<int>& digit) {
      sum = unary_[v];
      for (const Table& table : tables) {
        const Cost* cells = table.function.cost.data() + offset(digit, table.stride);
        for (std::size_t x = 0; x < size; ++x) sum[x] = network::add(sum[x], cells[x * table.stride_of_v]);
      }
      const auto best = std::min_element(sum.begin(), sum.end());
      step.best.push_back(static_cast<int>(best - sum.begin()));
      message.push_back(*best);
    });
    if (scope.empty()) {
      network_.constant = network::add(network_.constant, message[0]);
    } else {
      Network single{network_.size, {}, 0, 0};
      single.add_function(scope, std::move(message));
      add(std::move(single.functions[0]));
    }
    return step;
  }

  // Returns the neighbours of a variable, ascending; the list ends early, unsorted, once it is longer than
  // `most_neighbours`.
  std::vector<Var> neighbours(Var v) {
    std::vector<Var> result;
    for (const int i : functions(v)) {
      for (const Var u : network_.functions[i].scope)
        if (u != v && std::find(result.begin(), result.end(), u) == result.end()) result.push_back(u);
      if (result.size() > most_neighbours) return result;
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  // Returns the functions that have v and at least one other variable. Each call drops removed functions from the front
  // of the list.
  const std::vector<int>& functions(Var v) {
    auto& list = touching_[v];
    // Only the front of a long list is read, so the rest may keep removed functions.
    const std::size_t max_visited = most_functions + most_neighbours;
    for (std::size_t k = 0; k < std::min(list.size(), max_visited);) {
      if (!network_.functions[list[k]].cost.empty()) {
        ++k;
        continue;
      }
      list[k] = list.back();
      list.pop_back();
    }
    return list;
  }

  Function remove(int i) {
    Function f = std::move(network_.functions[i]);
    network_.functions[i] = {};
    return f;
  }

  void add(Function f) {
    for (int p = f.arity(); p-- > 0 && f.arity() > 1;)
      if (is_independent(f, p, network_.size[f.scope[p]])) f = without(std::move(f), p);
    if (f.arity() == 1) {
      add_unary(f.scope[0], f.cost);
      return;
    }
    if (std::all_of(f.cost.begin(), f.cost.end(), [](Cost c) { return c == 0; })) return;
    forbid(f);
    for (const Var u : f.scope) wait_for(u);
    if (const int i = same(f.scope); i >= 0) {
      Function& host = network_.functions[i];
      const auto stride = strides(f, host.scope);
      std::size_t n = 0;
      for_each_cell(network_.size, host.scope, [&](const std::vector<int>& digit) {
        host.cost[n] = network::add(host.cost[n], f.cost[offset(digit, stride)]);
        ++n;
      });
      return;
    }
    for (const Var u : f.scope) touching_[u].push_back(static_cast<int>(network_.functions.size()));
    network_.functions.push_back(std::move(f));
  }

  Function without(Function f, int p) {
    const Var v = f.scope[p];
    std::vector<Var> scope = f.scope;
    scope.erase(scope.begin() + p);
    const auto stride = strides(f, scope);
    std::vector<Cost> cost;
    for_each_cell(network_.size, scope,
                  [&](const std::vector<int>& digit) { cost.push_back(f.cost[offset(digit, stride)]); });
    wait_for(v);
    Network single{network_.size, {}, 0, 0};
    single.add_function(std::move(scope), std::move(cost));
    return std::move(single.functions[0]);
  }

  // Gives a forbidden unary cost to values that have no allowed cell in the function.
  void forbid(const Function& f) {
    for (int p = 0; p < f.arity(); ++p) {
      std::vector<Cost> low(static_cast<std::size_t>(network_.size[f.scope[p]]), forbidden);
      for (std::size_t k = 0; k < f.cost.size(); ++k) {
        Cost& cell = low[k / f.stride[p] % low.size()];
        cell = std::min(cell, f.cost[k]);
      }
      bool is_new = false;
      for (std::size_t x = 0; x < low.size(); ++x) {
        low[x] = low[x] >= forbidden ? forbidden : 0;
        is_new |= low[x] > 0 && unary_[f.scope[p]][x] < forbidden;
      }
      if (is_new) add_unary(f.scope[p], low);
    }
  }

  void add_unary(Var v, const std::vector<Cost>& cost) {
    for (std::size_t x = 0; x < cost.size(); ++x) unary_[v][x] = network::add(unary_[v][x], cost[x]);
    wait_for(v);
  }

  void wait_for(Var v) {
    if (is_waiting_[v] || is_gone_[v]) return;
    is_waiting_[v] = 1;
    waiting_.push_back(v);
  }

  // Returns the number of a function with this scope; -1: none.
  int same(const std::vector<Var>& scope) {
    const Var fewest = *std::min_element(scope.begin(), scope.end(),
                                         [&](Var a, Var b) { return touching_[a].size() < touching_[b].size(); });
    for (const int i : functions(fewest)) {
      const auto& other = network_.functions[i].scope;
      if (other.size() == scope.size() && std::is_permutation(other.begin(), other.end(), scope.begin())) return i;
    }
    return -1;
  }

  Network network_;
  std::vector<std::vector<int>> touching_;  // functions of each variable with others
  std::vector<std::vector<Cost>> unary_;
  std::vector<char> is_waiting_, is_gone_;  // marks of each variable
  std::deque<Var> waiting_;
  std::size_t remaining_;  // number of variables not yet eliminated
};

Reduction::Reduction(const Network& network, const std::vector<Var>& order) : size_(network.size) {
  Work work(network, order);
  work.run(eliminated_);
  rest_ = work.rest(kept_);
}

std::vector<int> Reduction::extend(const std::vector<int>& value) const {
  std::vector<int> whole(size_.size(), 0);
  for (std::size_t i = 0; i < kept_.size(); ++i) whole[kept_[i]] = value[i];
  for (std::size_t i = eliminated_.size(); i-- > 0;) {
    const Eliminated& step = eliminated_[i];
    std::size_t cell = 0;
    for (const Var u : step.scope)
      cell = cell * static_cast<std::size_t>(size_[u]) + static_cast<std::size_t>(whole[u]);
    whole[step.var] = step.best[cell];
  }
  return whole;
}

}  // namespace elimina::network
