#include "tree.hpp"

#include <numeric>

#include "stop.hpp"

namespace elimina::filter {

namespace {

TablePtr padded(const Fields& fields, const Function& function, const Network& network, Value budget) {
  Scope scope = function.scope;
  std::sort(scope.begin(), scope.end());
  Table out{scope, std::vector<Value>(std::size_t{1} << fields.bits(scope), never)};
  std::vector<int> shift;
  for (Var v : function.scope) shift.push_back(fields.shift(v, scope));
  const Cost* next = function.cost.data();
  for_each_cell(network.size, function.scope, [&](const std::vector<int>& digit) {
    const Cost c = *next++;
    std::size_t cell = 0;
    for (std::size_t i = 0; i < digit.size(); ++i) cell |= static_cast<std::size_t>(digit[i]) << shift[i];
    out.value[cell] = c > budget ? never : static_cast<Value>(c);
  });
  return std::make_shared<Table>(std::move(out));
}

}  // namespace

plan::Tree plan_tree(const Network& network) {
  plan::Lists scopes;
  for (const Function& f : network.functions) scopes.append(f.scope);
  std::vector<int> order(network.count());
  std::iota(order.begin(), order.end(), 0);
  return plan::bucket_tree(scopes, std::move(order), {}, network.count(), {}, nullptr);
}

Tree tables_in_tree(const Network& network) {
  const int n = network.count();
  const plan::Tree planned = plan_tree(network);
  Tree tree{Fields(network.size), std::vector<Node>(n + 1), static_cast<Value>(network.upper - 1 - network.constant)};
  for (int b = 0; b < n; ++b) {
    Node& node = tree.nodes[b];
    const auto separator = planned.separators[b];
    node.separator.assign(separator.begin(), separator.end());
    node.cluster = join({b}, node.separator);
    node.parent = planned.parents[b] < 0 ? n : planned.parents[b];
    tree.nodes[node.parent].children.push_back(b);
    for (const int f : planned.factors[b])
      node.factors.push_back(padded(tree.fields, network.functions[f], network, tree.budget));
  }
  return tree;
}

std::optional<Bounds> bound_tree(const Tree& tree, int bits, std::size_t most_bytes) {
  const int root = tree.root();
  Bounds bounds{std::vector<Tables>(root + 1), std::vector<Tables>(root + 1)};
  const auto fits = [&](const Tables& made) {
    for (const TablePtr& table : made) bounds.bytes += table->value.size() * sizeof(Value);
    return bounds.bytes <= most_bytes;
  };
  for (int b = 0; b <= root; ++b) {
    check_stop();
    const Node& node = tree.nodes[b];
    Tables tables = node.factors;
    for (int c : node.children) tables.insert(tables.end(), bounds.up[c].begin(), bounds.up[c].end());
    if (b < root) {
      bounds.up[b] = eliminate(tree.fields, std::move(tables), b, bits, tree.budget);
      if (!fits(bounds.up[b])) return std::nullopt;
    } else {
      for (const TablePtr& table : tables) bounds.total = clamp(bounds.total + table->value[0]);
    }
  }
  for (int p = root; p >= 0; --p) {
    const Node& node = tree.nodes[p];
    for (int b : node.children) {
      check_stop();
      Tables tables = node.factors;
      tables.insert(tables.end(), bounds.down[p].begin(), bounds.down[p].end());
      for (int c : node.children)
        if (c != b) tables.insert(tables.end(), bounds.up[c].begin(), bounds.up[c].end());
      for (Var v : node.cluster)
        if (!holds(tree.nodes[b].separator, v))
          tables = eliminate(tree.fields, std::move(tables), v, bits, tree.budget);
      bounds.down[b] = pack(tree.fields, std::move(tables), bits, tree.budget);
      if (!fits(bounds.down[b])) return std::nullopt;
    }
  }
  return bounds;
}

}  // namespace elimina::filter
