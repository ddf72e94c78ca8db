#include "global_cardinality.hpp"

#include <algorithm>
#include <bit>

namespace elimina::cp {

namespace {

// True if values are close together, so that a row of a domain is a row of nodes; otherwise nodes are ranks of values.
bool is_dense(const Values& values) {
  return values.back() - values.front() < 4 * static_cast<Value>(values.size()) + 64;
}

Value nodes_of(const Values& values) {
  return is_dense(values) ? values.back() - values.front() + 1 : static_cast<Value>(values.size());
}

}  // namespace

bool GlobalCardinality::fits(const Views& xs, const Values& values) {
  constexpr Value kMostWords = Value{1} << 22;
  const Value nodes = nodes_of(values) + 2;
  return (nodes / 64 + 1) * (3 * nodes + static_cast<Value>(xs.size())) < kMostWords;
}

GlobalCardinality::GlobalCardinality(Views xs, Values values, Views counts)
    : Propagator(Priority::costly), xs_(std::move(xs)), values_(std::move(values)), counts_(std::move(counts)),
      is_dense_(is_dense(values_)), base_(values_.front()), others_(static_cast<int>(nodes_of(values_))),
      sink_(others_ + 1), words_(static_cast<std::size_t>(sink_) / 64 + 1),
      search_(static_cast<std::size_t>(sink_) + 1) {
  Views all = xs_;
  all.insert(all.end(), counts_.begin(), counts_.end());
  repeats_ = repeats(all);
  const auto nodes = static_cast<std::size_t>(sink_) + 1;
  for (std::size_t k = 0; k < values_.size(); ++k)
    node_.push_back(static_cast<int>(is_dense_ ? values_[k] - base_ : static_cast<Value>(k)));
  min_counts_.assign(nodes, 0);
  max_counts_.assign(nodes, static_cast<Value>(xs_.size()));
  rows_.resize(xs_.size() * words_);
  assigned_.assign(xs_.size(), kNone);
  positions_.resize(xs_.size());
  members_.resize(nodes);
  leads_.resize(nodes * words_);
  is_current_.resize(nodes);
  for (auto* bits : {&sources_, &targets_, &seen_}) bits->resize(words_);
  components_.resize(nodes * words_);
  parent_.resize(nodes);
  component_.resize(nodes);
}

void GlobalCardinality::attach(Engine& engine) {
  for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  for (const View c : counts_) engine.subscribe(*this, c, kBounds);
}

Outcome GlobalCardinality::propagate(Engine& engine) {
  Domains& d = engine.domains();
  load(d);
  // The bound of a count may move across a hole of the count's domain, and pass the current number of assigned
  // variables. Then the assignment is repaired again.
  for (bool fits = false; !fits;) {
    if (!load_counts(d) || !repair() || !tighten(d)) return Outcome::failed;
    fits = true;
    for (std::size_t c = 0; c < counts_.size(); ++c)
      fits = fits && d.lo(counts_[c]) <= count(node_[c]) && count(node_[c]) <= d.hi(counts_[c]);
  }
  load_counts(d);
  find_components();
  if (!filter(d)) return Outcome::failed;
  if (repeats_) return Outcome::again;
  return std::all_of(xs_.begin(), xs_.end(), [&](View x) { return d.fixed(x); }) ? Outcome::entailed
                                                                                 : Outcome::fixpoint;
}

int GlobalCardinality::first_of(const Word* words) const {
  for (std::size_t w = 0; w < words_; ++w)
    if (words[w]) return static_cast<int>(w * 64) + std::countr_zero(words[w]);
  return kNone;
}

void GlobalCardinality::load(const Domains& d) {
  std::fill(is_current_.begin(), is_current_.end(), 0);
  for (std::size_t i = 0; i < xs_.size(); ++i) {
    load_row(d, i);
    if (assigned_[i] != kNone && !has(row(i), assigned_[i])) release(static_cast<int>(i));
  }
}

void GlobalCardinality::load_row(const Domains& d, std::size_t i) {
  const View x = xs_[i];
  bool elsewhere;
  if (is_dense_) {
    d.read_row(x, base_, {row(i), words_});
    const auto last = static_cast<std::size_t>(others_) / 64;
    row(i)[last] &= ~(~Word{0} << (others_ % 64));
    row(i)[words_ - 1] = last + 1 < words_ ? 0 : row(i)[last];
    elsewhere = d.lo(x) < base_ || d.hi(x) >= base_ + others_;
  } else {
    std::fill(row(i), row(i) + words_, 0);
    Value inside = 0;
    for (int k = 0; k < others_; ++k) {
      if (!d.has(x, values_[static_cast<std::size_t>(k)])) continue;
      add(row(i), k);
      ++inside;
    }
    elsewhere = inside < d.size(x);
  }
  if (elsewhere) add(row(i), others_);
}

bool GlobalCardinality::load_counts(const Domains& d) {
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    const auto k = static_cast<std::size_t>(node_[c]);
    min_counts_[k] = std::max<Value>(0, d.lo(counts_[c]));
    max_counts_[k] = std::min(static_cast<Value>(xs_.size()), d.hi(counts_[c]));
    if (min_counts_[k] > max_counts_[k]) return false;
  }
  return true;
}

void GlobalCardinality::release(int i) {
  const auto k = static_cast<std::size_t>(assigned_[static_cast<std::size_t>(i)]),
             at = positions_[static_cast<std::size_t>(i)];
  const int last = members_[k].back();
  members_[k][at] = last;
  positions_[static_cast<std::size_t>(last)] = at;
  members_[k].pop_back();
  assigned_[static_cast<std::size_t>(i)] = kNone;
  is_current_[k] = 0;
}

void GlobalCardinality::assign_value(int i, int k) {
  auto& members = members_[static_cast<std::size_t>(k)];
  positions_[static_cast<std::size_t>(i)] = members.size();
  members.push_back(i);
  assigned_[static_cast<std::size_t>(i)] = k;
  is_current_[static_cast<std::size_t>(k)] = 0;
}

const GlobalCardinality::Word* GlobalCardinality::leads(int k) {
  Word* result = leads_.data() + static_cast<std::size_t>(k) * words_;
  if (is_current_[static_cast<std::size_t>(k)]) return result;
  std::fill(result, result + words_, 0);
  for (const int i : members_[static_cast<std::size_t>(k)])
    for (std::size_t w = 0; w < words_; ++w) result[w] |= row(static_cast<std::size_t>(i))[w];
  is_current_[static_cast<std::size_t>(k)] = 1;
  return result;
}

const GlobalCardinality::Word* GlobalCardinality::can_take() {
  std::fill(targets_.begin(), targets_.end(), 0);
  for (int k = 0; k <= others_; ++k)
    if (count(k) < max_count(k)) add(targets_.data(), k);
  return targets_.data();
}

const GlobalCardinality::Word* GlobalCardinality::can_give(int without) {
  std::fill(sources_.begin(), sources_.end(), 0);
  for (int k = 0; k <= others_; ++k)
    if (k != without && count(k) > min_count(k)) add(sources_.data(), k);
  return sources_.data();
}

// Returns the first target that a breadth-first search from the sources reaches, or kNone. `parent_` leads back along
// the path.
int GlobalCardinality::reach(const Word* sources, const Word* targets) {
  queue_.clear();
  std::fill(seen_.begin(), seen_.end(), 0);
  const auto go_on = [&](const Word* words, int from) {
    for (std::size_t w = 0; w < words_; ++w)
      for (Word fresh = words[w] & ~seen_[w]; fresh; fresh &= fresh - 1) {
        const int k = static_cast<int>(w * 64) + std::countr_zero(fresh);
        parent_[static_cast<std::size_t>(k)] = from;
        queue_.push_back(k);
        add(seen_.data(), k);
      }
  };
  go_on(sources, kNone);
  for (std::size_t head = 0; head < queue_.size(); ++head) {
    if (has(targets, queue_[head])) return queue_[head];
    go_on(leads(queue_[head]), queue_[head]);
  }
  return kNone;
}

// Moves one variable along each step of the path to the target; returns the first value of the path.
int GlobalCardinality::shift(int target) {
  for (;;) {
    const int from = parent_[static_cast<std::size_t>(target)];
    if (from == kNone) return target;
    const auto& members = members_[static_cast<std::size_t>(from)];
    const int i = *std::find_if(members.begin(), members.end(),
                                [&](int m) { return has(row(static_cast<std::size_t>(m)), target); });
    release(i);
    assign_value(i, target);
    target = from;
  }
}

bool GlobalCardinality::repair() {
  for (int k = 0; k <= others_; ++k)
    while (count(k) > max_count(k)) release(members_[static_cast<std::size_t>(k)].back());
  for (std::size_t i = 0; i < xs_.size(); ++i) {
    if (assigned_[i] != kNone) continue;
    const int target = reach(row(i), can_take());
    if (target == kNone) return false;
    assign_value(static_cast<int>(i), shift(target));
  }
  for (int k = 0; k < others_; ++k)
    while (count(k) < min_count(k))
      if (!fill(k)) return false;
  return true;
}

// Assigns the value k to one more variable. The search finds a path of the residual graph to k, from a value whose
// count may fall; a variable with each value on the path takes the next value. Returns false if there is no path.
bool GlobalCardinality::fill(int k) {
  std::fill(targets_.begin(), targets_.end(), 0);
  add(targets_.data(), k);
  if (reach(can_give(k), targets_.data()) == kNone) return false;
  shift(k);
  return true;
}

// Tightens the counts. For each value k, augmenting paths change the current flow to those with the largest and the
// smallest number of variables at k. Returns false if a count has no value left.
bool GlobalCardinality::tighten(Domains& d) {
  for (std::size_t c = 0; c < counts_.size(); ++c) {
    const int k = node_[c];
    const auto index = static_cast<std::size_t>(k);
    if (min_count(k) == max_count(k)) {
      if (!d.assign(counts_[c], min_count(k))) return false;
      continue;
    }
    push_up(k, max_count(k));
    if (!d.set_hi(counts_[c], count(k))) return false;
    max_counts_[index] = count(k);
    push_down(k, min_count(k));
    if (!d.set_lo(counts_[c], count(k))) return false;
    min_counts_[index] = count(k);
  }
  return true;
}

void GlobalCardinality::push_up(int k, Value limit) {
  while (count(k) < limit)
    if (!fill(k)) return;
}

void GlobalCardinality::push_down(int k, Value limit) {
  while (count(k) > limit) {
    std::fill(sources_.begin(), sources_.end(), 0);
    add(sources_.data(), k);
    can_take();
    targets_[static_cast<std::size_t>(k) / 64] &= ~(Word{1} << (k % 64));
    const int target = reach(sources_.data(), targets_.data());
    if (target == kNone) return;
    shift(target);
  }
}

void GlobalCardinality::find_components() {
  auto& open = search_.open;
  std::fill(open.begin(), open.end(), ~Word{0});
  open[words_ - 1] = ~Word{0} >> (63 - sink_ % 64);
  std::fill(component_.begin(), component_.end(), kNone);
  int component = 0;
  for (int k = 0; k <= others_; ++k) {
    Word* const row = leads_.data() + static_cast<std::size_t>(k) * words_;
    leads(k);
    if (count(k) < max_count(k)) add(row, sink_);
  }
  Word* const from_sink = leads_.data() + static_cast<std::size_t>(sink_) * words_;
  std::copy_n(can_give(kNone), words_, from_sink);
  const auto close = [&](const Word* nodes) {
    std::copy_n(nodes, words_, components_.data() + static_cast<std::size_t>(component) * words_);
    for (std::size_t w = 0; w < words_; ++w)
      for (Word bits = nodes[w]; bits; bits &= bits - 1)
        component_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))] = component;
    ++component;
  };
  for (int k = 0; k <= others_; ++k) {
    if (members_[static_cast<std::size_t>(k)].empty() || !has(open.data(), k)) continue;
    search_.search(
        static_cast<std::size_t>(k), [this](std::size_t node) { return leads_.data() + node * words_; }, close);
  }
  // The rows of `leads_` now have the bits of the sink, which other searches must not see, so the rows are rebuilt when
  // needed.
  std::fill(is_current_.begin(), is_current_.end(), 0);
}

bool GlobalCardinality::filter(Domains& d) {
  for (std::size_t i = 0; i < xs_.size(); ++i) {
    if (d.fixed(xs_[i])) continue;
    const int has_now = assigned_[i];
    const Word* kept =
        components_.data() + static_cast<std::size_t>(component_[static_cast<std::size_t>(has_now)]) * words_;
    for (std::size_t w = 0; w < words_; ++w)
      for (Word lost = row(i)[w] & ~kept[w]; lost; lost &= lost - 1) {
        const int k = static_cast<int>(w * 64) + std::countr_zero(lost);
        const bool removed = k == others_
                                 ? keep_counted(d, xs_[i])
                                 : d.remove(xs_[i], is_dense_ ? base_ + k : values_[static_cast<std::size_t>(k)]);
        if (!removed) return false;
      }
  }
  return true;
}

// Removes from x the values that no count refers to. If the domain is huge, those between two counted values stay.
bool GlobalCardinality::keep_counted(Domains& d, View x) const {
  if (!d.set_lo(x, values_.front()) || !d.set_hi(x, values_.back())) return false;
  if (is_dense_ || d.hi(x) - d.lo(x) > kListed) return true;
  bool alive = true;
  d.each(x, [&](Value value) {
    if (alive && !std::binary_search(values_.begin(), values_.end(), value)) alive = d.remove(x, value);
  });
  return alive;
}

}  // namespace elimina::cp
