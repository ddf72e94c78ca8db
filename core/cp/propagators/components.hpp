// Strongly connected components by the path-based algorithm (Gabow, Information Processing Letters 74, 2000). Nodes are
// bits of words.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace elimina::cp {

class Components {
 public:
  using Word = std::uint64_t;

  explicit Components(std::size_t nodes) : open((nodes + 63) / 64), to_(open.size()), on_stack_(open.size()) {}

  // Restricts the search to the nodes of the words from `from` to `to` - 1. Nodes of the core form one component, which
  // is never closed.
  void begin(std::size_t from, std::size_t to, const Word* core) {
    from_ = from, to_ = to;
    std::copy(core + from, core + to, on_stack_.begin() + static_cast<std::ptrdiff_t>(from));
    roots_.clear();
    push(kCore);
    std::copy(core + from, core + to, top() + from);
  }

  // Visits an open node and all open nodes that it leads to. `row(node)` returns the words of a node's successors.
  // `close(nodes)` is called with the words of each component, after the components that it leads to.
  template <class Row, class Close>
  void search(std::size_t root, Row row, Close close) {
    visit(root);
    while (!frames_.empty()) {
      auto& [node, w] = frames_.back();
      const Word* const next = row(node);
      while (w < to_ && !(next[w] & open[w])) ++w;
      if (w < to_) {
        visit(w * 64 + static_cast<std::size_t>(std::countr_zero(next[w] & open[w])));
        continue;
      }
      const std::size_t last = node;
      frames_.pop_back();
      merge(next);
      if (roots_.back() != last) continue;
      const Word* const component = top();
      for (std::size_t v = from_; v < to_; ++v) on_stack_[v] &= ~component[v];
      close(component);
      roots_.pop_back();
    }
  }

  std::vector<Word> open;  // nodes that have not been visited

 private:
  static constexpr std::size_t kCore = ~std::size_t{0};

  struct Frame {
    std::size_t node, word;
  };

  Word* top() { return path_.data() + (roots_.size() - 1) * open.size(); }

  void push(std::size_t root) {
    roots_.push_back(root);
    if (path_.size() < roots_.size() * open.size()) path_.resize(roots_.size() * open.size());
  }

  void visit(std::size_t node) {
    const Word bit = Word{1} << (node % 64);
    open[node / 64] &= ~bit;
    on_stack_[node / 64] |= bit;
    push(node);
    std::fill(top() + from_, top() + to_, 0);
    top()[node / 64] |= bit;
    frames_.push_back({node, from_});
  }

  // Merges all components on the path from the reached node on: the edge back to this node makes them one component.
  void merge(const Word* next) {
    for (std::size_t w = from_; w < to_;) {
      const Word* const last = top();
      if (!(next[w] & on_stack_[w] & ~last[w])) {
        ++w;
        continue;
      }
      roots_.pop_back();
      for (std::size_t v = from_; v < to_; ++v) top()[v] |= last[v];
    }
  }

  std::size_t from_ = 0, to_;
  std::vector<Word> on_stack_;
  std::vector<Frame> frames_;
  std::vector<std::size_t> roots_;  // of each component on the path, the node that was visited first
  std::vector<Word> path_;          // nodes of these components, as bits
};

}  // namespace elimina::cp
