#include "tree.hpp"

#include <numeric>

#include "stop.hpp"

namespace elimina::filter::ELIMINA_ISA {

namespace {

TablePtr padded(const Fields& fields, const Factor& factor, Value budget) {
  Scope scope = factor.scope;
  std::sort(scope.begin(), scope.end());
  Table out{scope, std::vector<Value>(std::size_t{1} << fields.bits(scope), never)};
  std::vector<int> shift, digit(scope.size(), 0);
  for (Var v : factor.scope) shift.push_back(fields.shift(v, scope));
  for (Cost c : factor.cost) {
    std::size_t place = 0;
    for (std::size_t i = 0; i < digit.size(); ++i) place |= static_cast<std::size_t>(digit[i]) << shift[i];
    out.value[place] = c > budget ? never : static_cast<Value>(c);
    for (std::size_t i = digit.size(); i-- > 0;) {
      if (++digit[i] < fields.size(factor.scope[i])) break;
      digit[i] = 0;
    }
  }
  return std::make_shared<Table>(std::move(out));
}

}  // namespace

plan::Tree plan_tree(const Model& model) {
  plan::Lists scopes;
  for (const Factor& f : model.factors) scopes.append(f.scope);
  std::vector<int> order(model.count());
  std::iota(order.begin(), order.end(), 0);
  return plan::bucket_tree(scopes, std::move(order), {}, model.count(), {}, nullptr);
}

Tree tables_in_tree(const Model& model) {
  const int n = model.count();
  const plan::Tree planned = plan_tree(model);
  Tree tree{Fields(model.size), std::vector<Node>(n + 1), static_cast<Value>(model.upper - 1 - model.constant)};
  for (int b = 0; b < n; ++b) {
    Node& node = tree.nodes[b];
    const auto separator = planned.separators[b];
    node.separator.assign(separator.begin(), separator.end());
    node.cluster = join({b}, node.separator);
    node.parent = planned.parents[b] < 0 ? n : planned.parents[b];
    tree.nodes[node.parent].children.push_back(b);
    for (const int f : planned.factors[b]) node.factors.push_back(padded(tree.fields, model.factors[f], tree.budget));
  }
  return tree;
}

Bounds bound_tree(const Tree& tree, int bits) {
  const int root = tree.root();
  Bounds bounds{std::vector<Tables>(root + 1), std::vector<Tables>(root + 1), 0};
  for (int b = 0; b <= root; ++b) {
    check_stop();
    const Node& node = tree.nodes[b];
    Tables parts = node.factors;
    for (int c : node.children) parts.insert(parts.end(), bounds.up[c].begin(), bounds.up[c].end());
    if (b < root)
      bounds.up[b] = eliminate(tree.fields, std::move(parts), b, bits, tree.budget);
    else
      for (const TablePtr& part : parts) bounds.total = clamp(bounds.total + part->value[0]);
  }
  for (int p = root; p >= 0; --p) {
    const Node& node = tree.nodes[p];
    for (int b : node.children) {
      check_stop();
      Tables parts = node.factors;
      parts.insert(parts.end(), bounds.down[p].begin(), bounds.down[p].end());
      for (int c : node.children)
        if (c != b) parts.insert(parts.end(), bounds.up[c].begin(), bounds.up[c].end());
      for (Var v : node.cluster)
        if (!holds(tree.nodes[b].separator, v)) parts = eliminate(tree.fields, std::move(parts), v, bits, tree.budget);
      bounds.down[b] = pack(tree.fields, std::move(parts), bits, tree.budget);
    }
  }
  return bounds;
}

}  // namespace elimina::filter::ELIMINA_ISA
