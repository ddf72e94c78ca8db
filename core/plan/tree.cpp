#include "plan/tree.hpp"

#include <numeric>

#include "plan/mini_buckets.hpp"
#include "stop.hpp"

namespace elimina::plan {
namespace {

class Builder {
 public:
  Builder(const Lists& scopes, Tree& tree, std::optional<int> ibound, const Partition* partition)
      : scopes_(scopes), tree_(tree), ibound_(ibound), partition_(partition), first_(tree.order.size(), -1),
        last_(tree.order.size()) {
    marks_.resize(tree.position.size());
    items_.reserve(std::size_t(scopes.size()) + tree.order.size());
    for (i64 number = 0; number < scopes.size(); ++number) add_item({int(number), -1, -1}, earliest(scopes[number]));
  }

  void build() {
    Looks looks;
    for (int position = 0; position < int(tree_.order.size()); ++position) {
      looks.look();
      bucket_.clear();
      for (int item = first_[position]; item >= 0; item = items_[item].next) bucket_.push_back(item);
      if (partition_) {
        for (const auto& mini_bucket : (*partition_)[position]) add_node(position, mini_bucket);
      } else if (!ibound_ || bucket_.size() < 2) {
        while (all_.size() < bucket_.size()) all_.push_back(int(all_.size()));
        add_node(position, {all_.data(), bucket_.size()});
      } else {
        scopes_of_.clear();
        for (const int item : bucket_) scopes_of_.push_back(scope_of(items_[item]));
        for (const auto& mini_bucket : mini_buckets_.divide(scopes_of_, *ibound_ + 1)) add_node(position, mini_bucket);
      }
    }
  }

 private:
  // A table in a bucket: a factor, or (factor -1) the message of a child; and the next one in its bucket.
  struct Item {
    int factor, child, next;
  };

  int earliest(std::span<const int> scope) const {
    int first = tree_.position[scope.front()];
    for (const int v : scope) first = std::min(first, tree_.position[v]);
    return first;
  }

  void add_item(const Item& item, int position) {
    if (position >= int(first_.size())) return;
    const int number = int(items_.size());
    items_.push_back(item);
    (first_[position] < 0 ? first_[position] : items_[last_[position]].next) = number;
    last_[position] = number;
  }

  std::span<const int> scope_of(const Item& item) const {
    return item.factor >= 0 ? scopes_[item.factor] : tree_.separators[item.child];
  }

  // Adds a node of the variable at a position of the order. `members`: places of the node's items in the bucket.
  void add_node(int position, std::span<const int> members) {
    const int number = int(tree_.variables.size()), variable = tree_.order[position];
    marks_.clear();
    marks_.add(variable);
    separator_.clear();
    for (const int i : members) {
      const Item& item = items_[bucket_[i]];
      for (const int v : scope_of(item))
        if (marks_.add(v)) separator_.push_back(v);
      if (item.factor >= 0) {
        tree_.factors.add(item.factor);
      } else {
        tree_.children.add(item.child);
        tree_.parents[item.child] = number;
      }
    }
    tree_.factors.close();
    tree_.children.close();
    std::sort(separator_.begin(), separator_.end(),
              [&](int a, int b) { return tree_.position[a] < tree_.position[b]; });
    tree_.separators.append(separator_);
    tree_.variables.push_back(variable);
    tree_.parents.push_back(-1);
    if (!separator_.empty()) this->add_item({-1, number, -1}, tree_.position[separator_.front()]);
  }

  const Lists& scopes_;
  Tree& tree_;
  std::optional<int> ibound_;
  const Partition* partition_;
  std::vector<Item> items_;
  std::vector<int> first_, last_;  // items of each bucket
  std::vector<int> bucket_, separator_, all_;
  std::vector<std::span<const int>> scopes_of_;
  MiniBuckets mini_buckets_;
  Marks marks_;
};

// A forest. `walk` visits the tree of a node, from this node on.
class Forest {
 public:
  explicit Forest(std::span<const int> parents) : towards_(parents.size()), seen_(parents.size(), -1) {
    const auto join = [&](auto link) {
      for (int number = 0; number < int(parents.size()); ++number)
        if (const int parent = parents[number]; parent >= 0) link(number, parent), link(parent, number);
    };
    near_.starts.resize(parents.size() + 1);
    join([&](int number, int) { ++near_.starts[number + 1]; });
    std::partial_sum(near_.starts.begin(), near_.starts.end(), near_.starts.begin());
    near_.items.resize(near_.starts.back());
    std::vector<i64> end(near_.starts.begin(), near_.starts.end() - 1);
    join([&](int number, int other) { near_.items[end[number]++] = other; });
  }

  // Returns the nodes by distance from the root; afterwards, `towards` returns a node's neighbour on the path to the
  // root.
  const std::vector<int>& walk(int root) {
    ++walks_;
    reached_.assign(1, root);
    towards_[root] = -1;
    seen_[root] = walks_;
    for (std::size_t i = 0; i < reached_.size(); ++i) {
      const int number = reached_[i];
      for (const int other : near_[number])
        if (seen_[other] != walks_) {
          seen_[other] = walks_;
          towards_[other] = number;
          reached_.push_back(other);
        }
    }
    return reached_;
  }
  int towards(int number) const { return towards_[number]; }

  // Returns the middle of a longest path.
  int middle(int start) {
    const int end = walk(start).back();
    std::vector<int> path{walk(end).back()};
    while (towards_[path.back()] >= 0) path.push_back(towards_[path.back()]);
    return path[path.size() / 2];
  }

 private:
  Lists near_;  // neighbours of each node
  std::vector<int> towards_, seen_, reached_;
  int walks_ = 0;
};

}  // namespace

i64 Tree::width() const {
  i64 width = 0;
  for (i64 number = 0; number < size(); ++number) width = std::max(width, i64(separators[number].size()));
  return width;
}

i64 Tree::depth() const {
  std::vector<i64> depths(size());
  i64 largest = 0;
  for (i64 number = size() - 1; number >= 0; --number) {
    depths[number] = parents[number] < 0 ? 1 : depths[parents[number]] + 1;
    largest = std::max(largest, depths[number]);
  }
  return largest;
}

std::vector<int> Tree::postorder() const {
  std::vector<int> result, stack;
  for (int number = 0; number < int(size()); ++number)
    if (parents[number] < 0) stack.push_back(number);
  while (!stack.empty()) {
    const int number = stack.back();
    stack.pop_back();
    result.push_back(number);
    for (const int child : children[number]) stack.push_back(child);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

Tree bucket_tree(const Lists& scopes, std::vector<int> order, std::vector<int> kept, i64 variables,
                 std::optional<int> ibound, const Partition* partition) {
  Tree tree;
  tree.order = std::move(order);
  tree.kept = std::move(kept);
  tree.position.assign(variables, -1);
  int position = 0;
  for (const int v : tree.order) tree.position[v] = position++;
  for (const int v : tree.kept) tree.position[v] = position++;
  Builder(scopes, tree, ibound, partition).build();
  return tree;
}

i64 PlannedTree::largest() const {
  i64 cells = 1;
  for (i64 number = 0; number < tree.size(); ++number)
    cells = std::max(cells, cells_of(tree.separators[number], sizes));
  return cells;
}

PlannedTree plan_tree(Lists scopes, std::vector<i64> sizes, std::vector<int> order, std::vector<int> kept,
                      std::optional<int> ibound, const Partition* partition) {
  PlannedTree made{std::move(sizes), std::move(scopes), {}};
  made.tree = bucket_tree(made.scopes, std::move(order), std::move(kept), i64(made.sizes.size()), ibound, partition);
  const std::vector<int>& position = made.tree.position;
  std::vector<int>& items = made.scopes.items;
  for (i64 f = 0; f < made.scopes.size(); ++f)
    std::sort(items.begin() + made.scopes.starts[f], items.begin() + made.scopes.starts[f + 1],
              [&](int a, int b) { return position[a] < position[b]; });
  return made;
}

// A bucket's clique is part of a child's clique exactly if the child's separator is as large as the bucket's clique
// (Blair and Peyton 1993).
Cliques junction_tree(const Tree& tree) {
  std::vector<int> clique_of(tree.size()), base, tops;
  for (int number = 0; number < int(tree.size()); ++number) {
    const std::size_t full = tree.separators[number].size() + 1;
    const auto children = tree.children[number];
    int holder = -1;
    for (auto child = children.rbegin(); holder < 0 && child != children.rend(); ++child)
      if (tree.separators[*child].size() == full) holder = *child;
    if (holder < 0) {
      clique_of[number] = int(base.size());
      base.push_back(number);
      tops.push_back(number);
    } else {
      clique_of[number] = clique_of[holder];
      tops[clique_of[holder]] = number;
    }
  }
  std::vector<int> by_top(base.size()), number(base.size());
  std::iota(by_top.begin(), by_top.end(), 0);
  std::sort(by_top.begin(), by_top.end(), [&](int a, int b) { return tops[a] < tops[b]; });
  for (std::size_t i = 0; i < by_top.size(); ++i) number[by_top[i]] = int(i);
  Cliques cliques;
  for (const int clique : by_top) {
    cliques.scopes.add(tree.variables[base[clique]]);
    for (const int v : tree.separators[base[clique]]) cliques.scopes.add(v);
    cliques.scopes.close();
    const int parent = tree.parents[tops[clique]];
    cliques.separators.append(tree.separators[tops[clique]]);
    cliques.parents.push_back(parent < 0 ? -1 : number[clique_of[parent]]);
  }
  return cliques;
}

std::vector<int> central_order(const Tree& tree, std::span<const i64> sizes) {
  const Cliques cliques = junction_tree(tree);
  Forest forest(cliques.parents);
  Marks above;
  above.resize(tree.position.size());
  std::vector<int> order, variables;
  for (int number = 0; number < int(cliques.parents.size()); ++number) {
    if (cliques.parents[number] >= 0) continue;
    const std::vector<int> reached = forest.walk(forest.middle(number));
    for (auto clique = reached.rbegin(); clique != reached.rend(); ++clique) {
      above.clear();
      if (const int towards = forest.towards(*clique); towards >= 0)
        for (const int v : cliques.scopes[towards]) above.add(v);
      variables.clear();
      for (const int v : cliques.scopes[*clique])
        if (!above.has(v)) variables.push_back(v);
      std::sort(variables.begin(), variables.end(),
                [&](int a, int b) { return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b; });
      order.insert(order.end(), variables.begin(), variables.end());
    }
  }
  return order;
}

}  // namespace elimina::plan
