#include "approx/frugal_order.hpp"

#include <algorithm>
#include <cmath>

namespace elimina::approx {

std::vector<int> frugal_order(const plan::PlannedTree& planned) {
  const plan::Tree& tree = planned.tree;
  const auto bits_of = [&](int variable) { return std::log2(double(planned.sizes[variable])); };
  plan::Lists children;
  // `bits`: log2 of the cells of each node's message. `peaks`: the largest sum of these logarithms over the messages
  // that the node's subtree holds at a time.
  std::vector<double> bits, peaks;
  std::vector<int> stack;
  for (int node = 0; node < int(tree.size()); ++node) {
    bits.push_back(0);
    for (const int v : tree.separators[node]) bits.back() += bits_of(v);
    std::vector<int> sorted(tree.children[node].begin(), tree.children[node].end());
    std::ranges::stable_sort(sorted, {}, [&](int child) { return bits[child] - peaks[child]; });
    double stored_bits = 0, peak = bits.back() + bits_of(tree.variables[node]);
    for (const int child : sorted) {
      peak = std::max(peak, stored_bits + peaks[child]);
      stored_bits += bits[child];
    }
    peaks.push_back(std::max(peak, stored_bits));
    children.append(sorted);
    if (tree.parents[node] < 0) stack.push_back(node);
  }
  // Lists parents before children, and a node's last child first. The reverse of this list is the elimination order.
  std::vector<int> order;
  while (!stack.empty()) {
    const int node = stack.back();
    stack.pop_back();
    order.push_back(tree.variables[node]);
    stack.insert(stack.end(), children[node].begin(), children[node].end());
  }
  std::ranges::reverse(order);
  return order;
}

}  // namespace elimina::approx
