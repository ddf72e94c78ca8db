// Circuits and sub-circuits as walks through strongly connected components.
#include <algorithm>
#include <bit>
#include <memory>
#include <span>

#include "components.hpp"
#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

// A cycle through all required nodes, one of which is the root. Without the root, the graph has strongly connected
// components, which the cycle passes one after another: from the root into the first one, and from the last one back to
// the root. It skips no component with a required node (Francis and Stuckey, Constraints 2014, with components instead
// of subtrees of one search).
//
// Fixed successors join nodes to paths. A path counts as one node, named by its last node. Its row has the possible
// successors of its last node; once AllDifferent has run, these are first nodes of paths.
//
// In most cases, all paths but the root form one component. Two searches from one path confirm this; the components are
// computed only if they do not.
class Connected final : public Propagator {
 public:
  explicit Connected(Views xs)
      : Propagator(Priority::costly), xs_(std::move(xs)), words_((xs_.size() + 63) / 64), next_(xs_.size()),
        path_of_(xs_.size()), first_(xs_.size()), is_entered_(xs_.size()), is_must_(xs_.size()), component_(xs_.size()),
        components_(xs_.size()) {
    for (Row* row : {&passed_, &pending_, &leading_, &goal_}) row->resize(words_);
  }

  void attach(Engine& engine) override {
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (!join(d)) return Outcome::fixpoint;
    for (std::size_t tried = 0; tried < nodes_.size(); ++tried) {
      root_ = nodes_[++turn_ % nodes_.size()];
      if (!must_be_visited(d, root_)) continue;
      if (leaves_nothing_out(d)) return Outcome::fixpoint;
      read(d);
      return pass(d) ? Outcome::fixpoint : Outcome::failed;
    }
    return Outcome::fixpoint;
  }

 private:
  using Word = std::uint64_t;
  using Row = std::vector<Word>;

  // Components are numbered against the order in which the cycle passes them; `kUnseen`: not reached from the root;
  // `kBack`: the root again, after component 0.
  static constexpr int kUnseen = -2, kBack = -1;

  static void add(Row& row, std::size_t i) { row[i / 64] |= Word{1} << (i % 64); }
  static void drop(Row& row, std::size_t i) { row[i / 64] &= ~(Word{1} << (i % 64)); }
  Word* row(std::size_t i) { return rows_.data() + i * words_; }
  bool has(std::size_t from, std::size_t to) { return row(from)[first_[to] / 64] >> (first_[to] % 64) & 1; }

  // Joins nodes to paths. Returns false if there are fewer than two paths, a cycle is closed, or two nodes have the
  // same successor, because other propagators handle these cases.
  bool join(const Domains& d) {
    const std::size_t n = xs_.size();
    nodes_.clear();
    std::fill(is_entered_.begin(), is_entered_.end(), 0);
    for (std::size_t i = 0; i < n; ++i) {
      next_[i] = d.fixed(xs_[i]) ? static_cast<std::size_t>(d.lo(xs_[i])) : n;
      if (next_[i] == n) nodes_.push_back(i);
      else is_entered_[next_[i]] = 1;
    }
    if (nodes_.size() < 2) return false;
    std::size_t joined = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (next_[i] == i) ++joined;
      if (is_entered_[i]) continue;
      std::size_t last = i;
      // While AllDifferent is waiting, two nodes may have the same successor, so the walk could run into a cycle;
      // `joined` limits its length.
      for (++joined; next_[last] < n && joined < n; last = next_[last]) ++joined;
      if (next_[last] < n) return false;
      first_[last] = i;
      path_of_[i] = last;
    }
    return joined == n;
  }

  bool must_be_visited(const Domains& d, std::size_t i) const {
    return first_[i] != i || !d.has(xs_[i], static_cast<Value>(i));
  }

  // True if there is nothing to filter: at least two paths lead to the root, and any path but the root leads to all
  // others without passing the root.
  bool leaves_nothing_out(const Domains& d) {
    int doors = 0;
    for (std::size_t k = 0; k < nodes_.size() && doors < 2; ++k)
      doors += nodes_[k] != root_ && d.has(xs_[nodes_[k]], static_cast<Value>(first_[root_]));
    const std::size_t start = nodes_[nodes_[0] == root_];
    return doors == 2 && reaches_all(d, start) && is_reached_by_all(d, start);
  }

  void open_all() {
    std::fill(components_.open.begin(), components_.open.end(), 0);
    for (const std::size_t i : nodes_) add(components_.open, first_[i]);
    drop(components_.open, first_[root_]);
  }

  bool reaches_all(const Domains& d, std::size_t start) {
    open_all();
    Row& open = components_.open;
    drop(open, first_[start]);
    std::size_t unreached = nodes_.size() - 2;
    stack_.assign(1, start);
    for (std::size_t next = 0; next < stack_.size() && unreached > 0; ++next) {
      const View x = xs_[stack_[next]];
      for (auto w = static_cast<std::size_t>(d.lo(x)) / 64; w <= static_cast<std::size_t>(d.hi(x)) / 64; ++w) {
        if (!open[w]) continue;
        Word reached = d.row_word(x, static_cast<Value>(w * 64)) & open[w];
        open[w] &= ~reached;
        for (; reached; reached &= reached - 1, --unreached)
          stack_.push_back(path_of_[w * 64 + static_cast<std::size_t>(std::countr_zero(reached))]);
      }
    }
    return unreached == 0;
  }

  // Looks for paths that lead to `start`, in a few rounds over those not yet known to. Returns true if all of them lead
  // there; false if some are still unknown.
  bool is_reached_by_all(const Domains& d, std::size_t start) {
    constexpr int kRounds = 4;
    std::fill(goal_.begin(), goal_.end(), 0);
    add(goal_, first_[start]);
    stack_ = nodes_;
    std::erase_if(stack_, [&](std::size_t i) { return i == root_ || i == start; });
    for (int round = 0; round < kRounds && !stack_.empty(); ++round)
      std::erase_if(stack_, [&](std::size_t i) {
        const bool leads = d.has(xs_[i], static_cast<Value>(first_[start])) || d.meets(xs_[i], 0, goal_);
        if (leads) add(goal_, first_[i]);
        return leads;
      });
    return stack_.empty();
  }

  void read(const Domains& d) {
    rows_.resize(xs_.size() * words_);
    for (const std::size_t i : nodes_) {
      d.read_row(xs_[i], 0, {row(i), words_});
      is_must_[i] = must_be_visited(d, i);
      row(i)[i / 64] &= ~(Word{1} << (i % 64));
    }
  }

  // Removes the given values from a row and its variable or, with `beside`, all values but these.
  bool remove_values(Domains& d, std::size_t from, const Row& values, bool beside = false) {
    for (std::size_t w = 0; w < words_; ++w) {
      Word lost = row(from)[w] & (beside ? ~values[w] : values[w]);
      row(from)[w] &= ~lost;
      for (; lost; lost &= lost - 1)
        if (!d.remove(xs_[from], static_cast<Value>(w * 64) + std::countr_zero(lost))) return false;
    }
    return true;
  }

  bool meets(std::size_t from, const Row& values) {
    for (std::size_t w = 0; w < words_; ++w)
      if (row(from)[w] & values[w]) return true;
    return false;
  }

  bool take_step(Domains& d, std::size_t from, std::size_t to) {
    row(from)[first_[to] / 64] &= ~(Word{1} << (first_[to] % 64));
    return d.remove(xs_[from], static_cast<Value>(first_[to]));
  }

  // Makes a node that the cycle cannot visit its own successor.
  bool leave_out(Domains& d, std::size_t i) {
    std::fill(row(i), row(i) + words_, 0);
    return d.assign(xs_[i], static_cast<Value>(i));
  }

  bool pass(Domains& d) {
    find_components();
    for (const std::size_t i : nodes_)
      if (component_[i] == kUnseen && !leave_out(d, i)) return false;
    const int count = component_[root_];
    musts_.assign(static_cast<std::size_t>(count), 0);
    for (const std::size_t i : members_) musts_[static_cast<std::size_t>(component_[i])] += is_must_[i];
    for (Row* row : {&passed_, &pending_, &leading_}) std::fill(row->begin(), row->end(), 0);
    for (Row* row : {&pending_, &leading_}) add(*row, first_[root_]);
    for (int c = 0; c < count; ++c)
      if (!pass(d, c)) return false;
    if (!remove_values(d, root_, passed_)) return false;
    for (int c = count; c >= 0; --c)
      if (is_passed(c) && is_passed(c - 1) && !keep_door(d, c)) return false;
    return true;
  }

  // Filters the nodes of component c; returns false if that fails. `passed_`: nodes that cannot follow directly,
  // because a component with a required node lies between. `pending_`: nodes to be added to `passed_` at the next
  // component with a required node. `leading_`: nodes from which the root can be reached.
  bool pass(Domains& d, int c) {
    bool leads = false;
    for (const std::size_t i : members(c)) {
      if (!remove_values(d, i, passed_)) return false;
      leads = leads || meets(i, leading_);
    }
    for (const std::size_t i : members(c)) {
      if (leads) add(leading_, first_[i]);
      else if (!leave_out(d, i)) return false;
    }
    if (is_passed(c)) {
      for (std::size_t w = 0; w < words_; ++w) passed_[w] |= pending_[w];
      std::fill(pending_.begin(), pending_.end(), 0);
    }
    for (const std::size_t i : members(c)) add(pending_, first_[i]);
    return true;
  }

  // Finds the components by a search that begins at the root and never enters it again.
  void find_components() {
    for (const std::size_t i : nodes_) component_[i] = kUnseen;
    open_all();
    members_.clear();
    begins_.assign(1, 0);
    const auto close = [this](const Word* firsts) {
      for (std::size_t w = 0; w < words_; ++w)
        for (Word bits = firsts[w]; bits; bits &= bits - 1) {
          members_.push_back(path_of_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))]);
          component_[members_.back()] = static_cast<int>(begins_.size()) - 1;
        }
      begins_.push_back(members_.size());
    };
    for (std::size_t w = 0; w < words_; ++w)
      while (const Word next_nodes = row(root_)[w] & components_.open[w])
        components_.search(
            w * 64 + static_cast<std::size_t>(std::countr_zero(next_nodes)),
            [this](std::size_t first) { return row(path_of_[first]); }, close);
    component_[root_] = static_cast<int>(begins_.size()) - 1;
  }

  std::span<const std::size_t> members(int c) const {
    if (c == kBack || c == component_[root_]) return {&root_, 1};
    return std::span(members_).subspan(begins_[static_cast<std::size_t>(c)],
                                       begins_[static_cast<std::size_t>(c) + 1] - begins_[static_cast<std::size_t>(c)]);
  }

  bool is_passed(int c) const {
    return c == kBack || c == component_[root_] || musts_[static_cast<std::size_t>(c)] > 0;
  }

  // Filters the arcs from component c to component c - 1. Both have required nodes, so the cycle uses exactly one of
  // these arcs. The cycle begins and ends at the root: the root alone is the component with the greatest number, and
  // `kBack` stands for it as the target of arcs from component 0.
  bool keep_door(Domains& d, int c) {
    constexpr std::size_t kNone = ~std::size_t{0}, kMany = kNone - 1;
    const auto record = [](std::size_t& only, std::size_t i) { only = only == kNone || only == i ? i : kMany; };
    std::size_t tail = kNone, head = kNone;
    std::fill(goal_.begin(), goal_.end(), 0);
    for (const std::size_t i : members(c - 1)) add(goal_, first_[i]);
    for (const std::size_t from : members(c)) {
      for (std::size_t w = 0; w < words_; ++w)
        for (Word steps = row(from)[w] & goal_[w]; steps && (tail != kMany || head != kMany); steps &= steps - 1) {
          record(tail, from);
          record(head, path_of_[w * 64 + static_cast<std::size_t>(std::countr_zero(steps))]);
        }
      if (tail == kMany && head == kMany) return true;
    }
    if (tail == kNone) return false;
    return (tail == kMany || keep_tail(d, tail, c)) && (head == kMany || keep_head(d, head, c));
  }

  // True if component c has a required node other than `node`. If the cycle enters the component at `node`, it must
  // leave it from another node, and the reverse.
  bool is_wide(int c, std::size_t node) const {
    return c != kBack && c != component_[root_] &&
           musts_[static_cast<std::size_t>(c)] > static_cast<int>(is_must_[node]);
  }

  bool keep_tail(Domains& d, std::size_t tail, int c) {
    if (!remove_values(d, tail, goal_, true) || !must(d, tail)) return false;
    if (!is_wide(c, tail)) return true;
    return std::all_of(nodes_.begin(), nodes_.end(), [&](std::size_t from) {
      return component_[from] <= c || !has(from, tail) || take_step(d, from, tail);
    });
  }

  bool keep_head(Domains& d, std::size_t head, int c) {
    if (!must(d, head)) return false;
    for (const std::size_t from : nodes_)
      if (component_[from] != c && has(from, head) && !take_step(d, from, head)) return false;
    return !is_wide(c - 1, head) || remove_values(d, head, goal_, true);
  }

  bool must(Domains& d, std::size_t i) { return d.remove(xs_[i], static_cast<Value>(i)); }

  Views xs_;
  std::size_t words_, turn_ = 0, root_ = 0;
  // `nodes_`: last node of each path. `next_`: next node of each node. `path_of_`: path of each first node. `first_`:
  // first node of each path.
  std::vector<std::size_t> nodes_, next_, path_of_, first_;
  std::vector<std::uint8_t> is_entered_, is_must_;
  // Components, and the state of the search for them and of `pass`. A set of paths is stored as the set of their first
  // nodes.
  std::vector<int> component_, musts_;
  Components components_;
  std::vector<std::size_t> stack_, members_, begins_;
  Row rows_, passed_, pending_, leading_, goal_;
};

}  // namespace

void post_connected(Engine& engine, const Views& successors) { engine.post(std::make_unique<Connected>(successors)); }

}  // namespace elimina::cp
