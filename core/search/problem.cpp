#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace elimina::search {

namespace {

// Largest sum of costs that is exact in a double.
constexpr double exact = 9007199254740992.0;  // 2^53

[[noreturn]] void invalid(const std::string& text) { throw std::invalid_argument(text); }

void check_variable(std::int64_t v, std::int64_t least, std::int64_t count, const char* what) {
  if (v < least || v >= count)
    throw std::out_of_range(std::string(what) + " is variable " + std::to_string(v) + "; there are " +
                            std::to_string(count));
}

}  // namespace

Problem::Problem(const Arena& arena, std::span<const std::int64_t> words, const std::vector<int>& sizes,
                 const std::vector<Var>& parents, Lists contexts, bool integral)
    : arena(arena), integral(integral), size(sizes), parent(parents), contexts(std::move(contexts)) {
  const auto count = static_cast<Var>(sizes.size());
  if (parents.size() != sizes.size() || this->contexts.size() != count)
    invalid("as many parents and contexts as sizes are needed");
  for (Var v = 0; v < count; ++v) {
    if (sizes[v] < 1) invalid("variable " + std::to_string(v) + " has " + std::to_string(sizes[v]) + " values");
    check_variable(parents[v], -1, count, "a parent");
    if (parents[v] < 0) parent[v] = count;
  }
  size.push_back(1);
  parent.push_back(-1);
  build_tree();
  read_tables(words);
  check_contexts();
  this->contexts.close();
  order_children();
  check_range();
  list_tables();
}

void Problem::build_tree() {
  std::vector<std::vector<int>> lists(size.size());
  for (Var v = 0; v < root(); ++v) lists[parent[v]].push_back(v);
  entry_.assign(size.size(), -1);
  exit_.assign(size.size(), 1);
  std::vector<Var> stack{root()};
  while (!stack.empty()) {
    const Var v = stack.back();
    stack.pop_back();
    entry_[v] = static_cast<int>(preorder.size());
    preorder.push_back(v);
    stack.insert(stack.end(), lists[v].rbegin(), lists[v].rend());
  }
  if (preorder.size() != size.size()) invalid("the parents are no forest: some variable is its own ancestor");
  for (std::size_t i = preorder.size() - 1; i > 0; --i) exit_[parent[preorder[i]]] += exit_[preorder[i]];
  for (const Var v : preorder) exit_[v] += entry_[v];
  children = Lists::of(lists);
}

// Subtrees with the smallest contexts come first, because they have the fewest assignments.
void Problem::order_children() {
  std::vector<std::vector<int>> lists;
  for (Var v = 0; v <= root(); ++v) {
    lists.emplace_back(children[v].begin(), children[v].end());
    std::stable_sort(lists.back().begin(), lists.back().end(),
                     [&](Var a, Var b) { return contexts[a].size() < contexts[b].size(); });
  }
  children = Lists::of(lists);
}

void Problem::read_tables(std::span<const std::int64_t> words) {
  constexpr std::size_t head = 5;
  for (std::size_t position = 0; position < words.size();) {
    if (words.size() - position < head) invalid("the words end within a table");
    const std::int64_t* word = words.data() + position;
    check_variable(word[1], -1, root(), "a table's home");
    check_variable(word[3], -1, root(), "a table's origin");
    if (word[4] < 0 || static_cast<std::uint64_t>(word[4]) > (words.size() - position - head) / 2)
      invalid("the words end within a table");
    const auto count = static_cast<std::size_t>(word[4]);
    Table table{static_cast<Var>(word[1] < 0 ? root() : word[1]), static_cast<Var>(word[3]), word[0], word[2], {}};
    for (std::size_t i = 0; i < count; ++i) {
      check_variable(word[head + 2 * i], 0, root(), "a table's variable");
      table.axes.push_back({static_cast<Var>(word[head + 2 * i]), word[head + 2 * i + 1]});
    }
    check_table(table);
    tables.push_back(std::move(table));
    position += head + 2 * count;
  }
}

void Problem::check_table(const Table& table) const {
  const std::string name = "table " + std::to_string(tables.size());
  std::int64_t last = table.offset;
  const auto reach = [&](Var v, std::int64_t stride) {
    if (stride < 0 || stride > arena.size) invalid(name + " has the stride " + std::to_string(stride));
    // Compares by division, because the product might overflow.
    if (stride && size[v] - 1 > (arena.size - 1 - last) / stride)
      throw std::out_of_range(name + " reaches beyond the arena");
    last += stride * (size[v] - 1);
  };
  if (table.offset < 0 || table.offset >= arena.size) throw std::out_of_range(name + " begins outside the arena");
  reach(table.home, table.stride);
  for (const auto& [v, stride] : table.axes) {
    if (!is_ancestor(v, table.home))
      invalid(name + " has variable " + std::to_string(v) + ", which is no ancestor of its home");
    reach(v, stride);
  }
  if (table.origin >= 0 && !is_ancestor(table.home, table.origin))
    invalid(name + " has a home that is no ancestor of its origin");
}

void Problem::check_contexts() const {
  Lists sorted = contexts;
  sorted.close();
  for (Var v = 0; v < root(); ++v) {
    const auto first = sorted.items.begin() + sorted.starts[v], last = sorted.items.begin() + sorted.starts[v + 1];
    std::sort(first, last);
    for (const Var u : contexts[v]) {
      check_variable(u, 0, root(), "one of a context");
      if (!is_ancestor(u, v))
        invalid("the context of variable " + std::to_string(v) + " has " + std::to_string(u) + ", no ancestor of it");
    }
    if (std::adjacent_find(first, last) != last)
      invalid("the context of variable " + std::to_string(v) + " repeats one");
  }
  const auto require = [&](Var v, Var u) {
    const auto context = sorted[v];
    if (!std::binary_search(context.begin(), context.end(), u))
      invalid("the context of variable " + std::to_string(v) + " lacks " + std::to_string(u) +
              ", on which its subtree depends");
  };
  for (const Table& table : tables)
    if (table.origin < 0)
      for (const Axis& axis : table.axes) require(table.home, axis.var);
  for (Var v = 0; v < root(); ++v)
    for (const Var u : sorted[v])
      if (u != parent[v]) require(parent[v], u);
}

void Problem::check_range() const {
  if (!integral) return;
  double total = 0;
  for (const Table& table : tables) {
    if (arena.type == Type::int16 || arena.type == Type::int32) {
      total += 2147483648.0;
      continue;
    }
    std::int64_t last = table.offset + table.stride * (size[table.home] - 1);
    for (const auto& [v, stride] : table.axes) last += stride * (size[v] - 1);
    total += arena.as_cells([&](const auto* cells) {
      double largest = 0;
      for (std::int64_t i = table.offset; i <= last; ++i)
        if (const double cost = arena.cost(cells[i]); cost < infinite) largest = std::max(largest, std::abs(cost));
      return largest;
    });
  }
  if (!(total < exact)) invalid("the tables' costs may add up to 2^53 or more, where sums are not exact");
}

void Problem::list_tables() {
  const int count = static_cast<int>(tables.size());
  // Visits the variables on the way of a message from its sender up to its home; in deep trees, most messages pass
  // hundreds of variables.
  const auto each_above = [&](int t, const auto& visit) {
    for (Var v = tables[t].origin; v >= 0 && v != tables[t].home; v = parent[v]) visit(v);
  };
  // `each` calls a function with each pair of a variable and one of its tables. It runs twice: to count the tables,
  // then to list them.
  const auto listed = [&](const auto& each) {
    Lists lists;
    lists.starts.assign(size.size() + 1, 0);
    each([&](Var v, int) { ++lists.starts[v + 1]; });
    for (std::size_t v = 0; v < size.size(); ++v) lists.starts[v + 1] += lists.starts[v];
    lists.items.resize(static_cast<std::size_t>(lists.starts.back()));
    auto next = lists.starts;
    each([&](Var v, int t) { lists.items[next[v]++] = t; });
    return lists;
  };
  const auto at_home = [&](bool is_factor) {
    return listed([&, is_factor](const auto& visit) {
      for (int t = 0; t < count; ++t)
        if ((tables[t].origin < 0) == is_factor) visit(tables[t].home, t);
    });
  };
  factors = at_home(true);
  messages = at_home(false);
  below = listed([&](const auto& visit) {
    for (const bool is_origin : {true, false})
      for (int t = 0; t < count; ++t)
        each_above(t, [&](Var v) {
          if ((v == tables[t].origin) == is_origin) visit(v, t);
        });
  });
  sent_.assign(size.size(), 0);
  for (const Table& table : tables)
    if (table.origin >= 0 && table.origin != table.home) ++sent_[table.origin];
}

std::size_t Problem::bytes() const {
  std::size_t axes = 0, items = 0;
  for (const Table& table : tables) axes += table.axes.capacity();
  for (const Lists* lists : {&children, &contexts, &factors, &messages, &below}) items += lists->items.size();
  return tables.size() * sizeof(Table) + axes * sizeof(Axis) + items * sizeof(int);
}

network::View Problem::factors_view() const {
  network::View view{arena, {size.begin(), size.end() - 1}, {}};
  arena.as_cells([&](const auto* cells) {
    for (const Table& table : tables) {
      if (table.origin >= 0 || table.home == root()) continue;
      view.functions.push_back({cells + table.offset, table.axes});
      view.functions.back().axes.push_back({table.home, table.stride});
    }
  });
  return view;
}

double Problem::cost(const std::vector<int>& value) const {
  return arena.as_cells([&](const auto* cells) {
    double total = 0;
    for (const Table& table : tables) {
      if (table.origin >= 0) continue;
      std::int64_t cell = table.offset + (table.home == root() ? 0 : table.stride * value[table.home]);
      for (const auto& [v, stride] : table.axes) cell += stride * value[v];
      total += arena.cost(cells[cell]);
    }
    return total;
  });
}

double Problem::rounded(double bound) const {
  constexpr double slack = 1e-6;  // largest error of sums of fractions
  return integral && arena.type >= Type::float32 ? std::ceil(bound - slack) : bound;
}

}  // namespace elimina::search
