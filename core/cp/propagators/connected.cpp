// Circuits and sub-circuits as walks through strongly connected components.
#include <algorithm>
#include <bit>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

// Nodes that have to be visited lie on one cycle through each of them. Without such a node, the root, the strongly connected
// components are passed one after the other: from the root into the first, from the last one back to it, and past none that
// has to be visited (Francis and Stuckey, Constraints 2014, with components instead of subtrees of one search).
class Connected final : public Propagator {
 public:
  explicit Connected(Views xs)
      : Propagator(Priority::costly),
        xs_(std::move(xs)),
        words_((xs_.size() + 63) / 64),
        rows_(xs_.size() * words_),
        is_must_(xs_.size()),
        numbers_(xs_.size()),
        lows_(xs_.size()),
        component_(xs_.size()) {}

  void attach(Engine& engine) override {
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    read(d);
    const std::size_t n = xs_.size();
    for (std::size_t tried = 0; tried < n; ++tried) {
      root_ = (root_ + 1) % n;
      if (is_must_[root_]) return pass(d) ? Outcome::fixpoint : Outcome::failed;
    }
    return Outcome::fixpoint;
  }

 private:
  // Components are numbered against the order of passage; `kUnseen`: not reached from the root.
  static constexpr int kUnseen = -2, kBack = -1;

  std::uint64_t* row(std::size_t i) { return rows_.data() + i * words_; }

  template <class F>
  bool each_successor(std::size_t i, F f) {
    for (std::size_t k = 0; k < words_; ++k)
      for (std::uint64_t word = row(i)[k]; word; word &= word - 1)
        if (!f(64 * k + static_cast<std::size_t>(std::countr_zero(word)))) return false;
    return true;
  }

  void read(const Domains& d) {
    for (std::size_t i = 0; i < xs_.size(); ++i) {
      d.read_row(xs_[i], 0, {row(i), words_});
      std::uint64_t& word = row(i)[i / 64];
      const std::uint64_t bit = std::uint64_t{1} << (i % 64);
      is_must_[i] = !(word & bit);
      word &= ~bit;
    }
  }

  bool drop(Domains& d, std::size_t from, std::size_t to) {
    row(from)[to / 64] &= ~(std::uint64_t{1} << (to % 64));
    return d.remove(xs_[from], static_cast<Value>(to));
  }

  // The node cannot be visited.
  bool leave_out(Domains& d, std::size_t i) {
    std::fill(row(i), row(i) + words_, 0);
    return d.assign(xs_[i], static_cast<Value>(i));
  }

  bool pass(Domains& d) {
    find_components();
    for (std::size_t i = 0; i < xs_.size(); ++i)
      if (component_[i] == kUnseen && !leave_out(d, i)) return false;
    count_musts();
    if (!drop_shortcuts(d, root_)) return false;
    for (std::size_t c = 0; c + 1 < begins_.size(); ++c)
      if (!leads_back(d, c)) return false;
    return keep_doors(d);
  }

  // Tarjan's search from the root, which it never enters again.
  void find_components() {
    std::fill(component_.begin(), component_.end(), kUnseen);
    std::fill(numbers_.begin(), numbers_.end(), 0);
    members_.clear();
    begins_.assign(1, 0);
    int count = 0;
    numbers_[root_] = ++count;
    each_successor(root_, [&](std::size_t i) {
      if (!numbers_[i]) search(i, count);
      return true;
    });
    component_[root_] = static_cast<int>(begins_.size()) - 1;
  }

  void search(std::size_t start, int& count) {
    const auto enter = [&](std::size_t i) {
      numbers_[i] = lows_[i] = ++count;
      open_.push_back(i);
      path_.push_back({i, 0, row(i)[0]});
    };
    enter(start);
    while (!path_.empty()) {
      Visit& at = path_.back();
      while (!at.word && at.at + 1 < words_) at.word = row(at.node)[++at.at];
      if (!at.word) {
        finish(at.node);
        const std::size_t node = at.node;
        path_.pop_back();
        if (!path_.empty()) lows_[path_.back().node] = std::min(lows_[path_.back().node], lows_[node]);
        continue;
      }
      const std::size_t next = 64 * at.at + static_cast<std::size_t>(std::countr_zero(at.word));
      at.word &= at.word - 1;
      if (!numbers_[next]) enter(next);
      else if (next != root_ && component_[next] == kUnseen) lows_[at.node] = std::min(lows_[at.node], numbers_[next]);
    }
  }

  void finish(std::size_t node) {
    if (lows_[node] != numbers_[node]) return;
    const int c = static_cast<int>(begins_.size()) - 1;
    std::size_t i;
    do {
      i = open_.back();
      open_.pop_back();
      component_[i] = c;
      members_.push_back(i);
    } while (i != node);
    begins_.push_back(members_.size());
  }

  // How many nodes of each component have to be visited, and how many components before it have such nodes.
  void count_musts() {
    const std::size_t count = begins_.size() - 1;
    musts_.assign(count, 0);
    musts_before_.assign(count + 1, 0);
    for (std::size_t c = 0; c < count; ++c) {
      for (std::size_t k = begins_[c]; k < begins_[c + 1]; ++k) musts_[c] += is_must_[members_[k]];
      musts_before_[c + 1] = musts_before_[c] + (musts_[c] > 0);
    }
    leads_back_.assign(count, false);
  }

  int end(std::size_t to) const { return to == root_ ? kBack : component_[to]; }

  bool drop_shortcuts(Domains& d, std::size_t from) {
    const int c = component_[from];
    return each_successor(from, [&](std::size_t to) {
      const int e = end(to);
      return e >= c || musts_before_[static_cast<std::size_t>(c)] == musts_before_[static_cast<std::size_t>(e + 1)] || drop(d, from, to);
    });
  }

  bool leads_back(Domains& d, std::size_t c) {
    bool leads = false;
    for (std::size_t k = begins_[c]; k < begins_[c + 1]; ++k) {
      if (!drop_shortcuts(d, members_[k])) return false;
      each_successor(members_[k], [&](std::size_t to) {
        const int e = end(to);
        leads = leads || e == kBack || (e < static_cast<int>(c) && leads_back_[static_cast<std::size_t>(e)]);
        return !leads;
      });
    }
    leads_back_[c] = leads;
    if (leads) return true;
    for (std::size_t k = begins_[c]; k < begins_[c + 1]; ++k)
      if (!leave_out(d, members_[k])) return false;
    return true;
  }

  // Between neighbours that both have to be visited there is one step. From the root, component `count`, to the first one; from
  // component 0 back to it.
  bool keep_doors(Domains& d) {
    const int count = static_cast<int>(begins_.size()) - 1;
    for (int c = count; c >= 0; --c)
      if (is_passed(c) && is_passed(c - 1) && !keep_door(d, c)) return false;
    return true;
  }

  bool is_passed(int c) const { return c == kBack || c == static_cast<int>(musts_.size()) || musts_[static_cast<std::size_t>(c)] > 0; }

  bool keep_door(Domains& d, int c) {
    constexpr std::size_t kNone = ~std::size_t{0}, kMany = kNone - 1;
    const auto note = [](std::size_t& only, std::size_t i) { only = only == kNone || only == i ? i : kMany; };
    std::size_t tail = kNone, head = kNone;
    
    const auto tails = [&](auto f) {
      if (c == static_cast<int>(musts_.size())) return f(root_);
      for (std::size_t k = begins_[static_cast<std::size_t>(c)]; k < begins_[static_cast<std::size_t>(c) + 1]; ++k)
        if (!f(members_[k])) return false;
      return true;
    };
    tails([&](std::size_t from) {
      return each_successor(from, [&](std::size_t to) {
        if (end(to) == c - 1) note(tail, from), note(head, to);
        return true;
      });
    });
    if (tail == kNone) return false;
    return (tail == kMany || keep_tail(d, tail, c)) && (head == kMany || keep_head(d, head, c));
  }

  // Whether a component has to be left by another node than it is entered.
  bool is_wide(int c, std::size_t node) const {
    return c != kBack && c != static_cast<int>(musts_.size()) && musts_[static_cast<std::size_t>(c)] > static_cast<int>(is_must_[node]);
  }

  bool keep_tail(Domains& d, std::size_t tail, int c) {
    const bool alone = each_successor(tail, [&](std::size_t to) { return end(to) == c - 1 || drop(d, tail, to); });
    if (!alone || !must(d, tail)) return false;
    if (!is_wide(c, tail)) return true;
    for (std::size_t from = 0; from < xs_.size(); ++from)
      if (component_[from] > c && has(from, tail) && !drop(d, from, tail)) return false;
    return true;
  }

  bool keep_head(Domains& d, std::size_t head, int c) {
    if (!must(d, head)) return false;
    const bool wide = is_wide(c - 1, head);
    for (std::size_t from = 0; from < xs_.size(); ++from)
      if (component_[from] != c && has(from, head) && !drop(d, from, head)) return false;
    return !wide || each_successor(head, [&](std::size_t to) { return end(to) == c - 1 || drop(d, head, to); });
  }

  bool has(std::size_t from, std::size_t to) { return row(from)[to / 64] >> (to % 64) & 1; }

  bool must(Domains& d, std::size_t i) { return d.remove(xs_[i], static_cast<Value>(i)); }

  struct Visit {
    std::size_t node, at;
    std::uint64_t word;
  };

  Views xs_;
  std::size_t words_, root_ = 0;
  std::vector<std::uint64_t> rows_;
  std::vector<std::uint8_t> is_must_, leads_back_;
  std::vector<int> numbers_, lows_, component_, musts_, musts_before_;
  std::vector<std::size_t> open_, members_, begins_;
  std::vector<Visit> path_;
};

}  // namespace

void post_connected(Engine& engine, const Views& successors) { engine.post(std::make_unique<Connected>(successors)); }

}  // namespace elimina::cp
