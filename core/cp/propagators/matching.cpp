#include "matching.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

namespace elimina::cp {

namespace {

// Number of iterations by which loops prefetch domains in advance. Prefetching the words of domains' rows costs more
// than it saves.
constexpr std::size_t kAhead = 16;

constexpr Value kMostMatrixWords = Value{1} << 25, kWidest = Value{1} << 20;

std::pair<Value, Value> ends(const Domains& d, const Views& xs) {
  Value lo = d.lo(xs[0]), hi = d.hi(xs[0]);
  for (const View x : xs) {
    lo = std::min(lo, d.lo(x));
    hi = std::max(hi, d.hi(x));
  }
  return {floor_div(lo, 64) * 64, hi};
}

// Returns the union of the variables' domains. If it has as many values as there are variables, no value can ever be
// free.
std::vector<std::uint64_t> values_of_all(const Domains& d, const Views& xs, Value base, std::size_t words) {
  std::vector<std::uint64_t> result(words), row(words);
  for (const View x : xs) {
    d.read_row(x, base, row);
    for (std::size_t w = 0; w < words; ++w) result[w] |= row[w];
  }
  return result;
}

}  // namespace

bool Matching::fits(const Domains& d, const Views& xs) {
  const auto [lo, hi] = ends(d, xs);
  return hi - lo < kWidest && ((hi - lo) / 64 + 1) <= kMostMatrixWords / static_cast<Value>(xs.size());
}

void Matching::post(Engine& engine, const Views& xs, Side side) {
  engine.post(std::make_unique<Matching>(engine.domains(), xs, side));
}

Matching::Matching(const Domains& d, Views xs, Side side)
    : Propagator(Priority::costly), xs_(std::move(xs)), side_(side), base_(ends(d, xs_).first),
      words_(static_cast<std::size_t>((ends(d, xs_).second - base_) / 64 + 1)), components_(words_ * 64) {
  const std::size_t n = xs_.size();
  rows_.resize(n * words_);
  loaded_.resize(n, 0);
  match_.resize(n, -1);
  owner_.resize(words_ * 64, -1);
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  unmatched_ = order_;
  position_.resize(n);
  std::iota(position_.begin(), position_.end(), std::size_t{0});
  listed_.resize(n, 0);
  free_ = values_of_all(d, xs_, base_, words_);
  closed_.resize(words_);
  parent_.resize(words_ * 64);
  members_.resize(words_);
  repeats_ = cp::repeats(xs_);
}

void Matching::attach(Engine& engine) {
  starts_ = engine.trail().make(xs_.size() / 64 + 1, 0);
  engine.trail().set(starts_, 1);
  for (std::size_t i = 0; i < xs_.size(); ++i) {
    engine.domains().materialise(xs_[i].var);
    engine.subscribe(*this, xs_[i], kDomain, static_cast<int>(i));
  }
}

void Matching::filter_by(DeviceBatch& device, std::size_t first_member) {
  device_ = &device;
  first_member_ = first_member;
}

Outcome Matching::propagate(Engine& engine) {
  if (!prepare(engine)) return Outcome::failed;
  return device_ ? device_->divide(engine, *this) : divide_here(engine);
}

Outcome Matching::divide_here(Engine& engine) {
  if (!divide(engine, subsets_)) return Outcome::failed;
  return repeats_ ? Outcome::again : Outcome::fixpoint;
}

bool Matching::divide(Engine& engine, std::span<Subset> subsets) {
  // If a variable has several views, all rows are read first: a value removed through one view must not be missing from
  // the row of another view.
  if (repeats_)
    for (Subset& subset : subsets) {
      measure(engine.domains(), subset);
      for (std::size_t p = subset.first; p < subset.last; ++p) load(engine.domains(), order_[p], subset);
    }
  return std::all_of(subsets.begin(), subsets.end(), [&](Subset& subset) { return split(engine, subset); });
}

bool Matching::prepare(Engine& engine) {
  const Domains& d = engine.domains();
  ++call_;
  for (std::size_t k = 0; k < touched.size(); ++k) {
    if (k + kAhead < touched.size()) d.prefetch(xs_[touched[k + kAhead]]);
    const int i = touched[k];
    if (match_[i] >= 0 && !d.has(xs_[i], base_ + match_[i])) release(i);
  }
  subsets_.clear();
  for (const auto* changed : {&touched, &unmatched_})
    for (const int i : *changed) {
      if (!subsets_.empty() && position_[i] >= subsets_.back().first && position_[i] < subsets_.back().last) continue;
      const Subset subset = subset_of(engine, i);
      if (listed_[subset.first] == call_) continue;
      listed_[subset.first] = call_;
      subsets_.push_back(subset);
    }
  for (Subset& subset : subsets_)
    if (!repair(d, subset)) return false;
  return true;
}

void Matching::release(int i) {
  add(free_.data(), static_cast<std::size_t>(match_[i]));
  owner_[match_[i]] = -1;
  match_[i] = -1;
  unmatched_.push_back(i);
}

Matching::Subset Matching::subset_of(const Engine& engine, int i) const {
  const Trail& trail = engine.trail();
  const std::size_t n = xs_.size(), position = position_[i];
  std::size_t w = position / 64;
  Word word = trail.get(starts_ + w) & (~Word{0} >> (63 - position % 64));
  while (!word) word = trail.get(starts_ + --w);
  const std::size_t first = w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word));
  w = position / 64;
  word = trail.get(starts_ + w) & ~(~Word{0} >> (63 - position % 64));
  while (!word && ++w <= n / 64) word = trail.get(starts_ + w);
  const std::size_t last = word ? w * 64 + static_cast<std::size_t>(std::countr_zero(word)) : n;
  return {first, last, 0, 0, i};
}

void Matching::measure(const Domains& d, Subset& subset) const {
  if (subset.to > 0) return;
  Value lo = d.lo(xs_[order_[subset.first]]), hi = lo;
  Value size = 0;
  for (std::size_t p = subset.first; p < subset.last; ++p) {
    const int i = order_[p];
    const View x = xs_[i];
    lo = std::min(lo, d.lo(x));
    hi = std::max(hi, d.hi(x));
    if (d.size(x) <= size) continue;
    size = d.size(x);
    subset.largest = i;
  }
  subset.from = static_cast<std::size_t>(lo - base_) / 64;
  subset.to = static_cast<std::size_t>(hi - base_) / 64 + 1;
}

const Matching::Word* Matching::load(const Domains& d, int i, const Subset& subset) {
  Word* words = row(i);
  if (loaded_[i] == call_) return words;
  loaded_[i] = call_;
  d.read_row(xs_[i], base_ + static_cast<Value>(subset.from * 64), {words + subset.from, subset.to - subset.from});
  return words;
}

// Matches the unmatched variables of the subset; returns false if that is impossible.
bool Matching::repair(const Domains& d, Subset& subset) {
  for (std::size_t k = 0; k < unmatched_.size();) {
    const int i = unmatched_[k];
    if (position_[i] < subset.first || position_[i] >= subset.last) {
      ++k;
      continue;
    }
    measure(d, subset);
    if (!augment(d, i, subset)) return false;
    unmatched_[k] = unmatched_.back();
    unmatched_.pop_back();
  }
  return true;
}

// Searches breadth first for a free value, which is usually a value of the variable itself; returns false if there is
// none.
bool Matching::augment(const Domains& d, int i, const Subset& subset) {
  for (std::size_t w = subset.from; w < subset.to; ++w) {
    if (!free_[w]) continue;
    if (const Word free = d.row_word(xs_[i], base_ + static_cast<Value>(w * 64)) & free_[w]) {
      rematch(w * 64 + static_cast<std::size_t>(std::countr_zero(free)), i);
      return true;
    }
  }
  std::vector<Word>& open = components_.open;
  std::fill(open.begin() + subset.from, open.begin() + subset.to, ~Word{0});
  queue_.assign(1, i);
  for (std::size_t next = 0; next < queue_.size(); ++next) {
    const int u = queue_[next];
    const Word* words = load(d, u, subset);
    for (std::size_t w = subset.from; w < subset.to; ++w)
      if (const Word free = words[w] & free_[w]) {
        rematch(w * 64 + static_cast<std::size_t>(std::countr_zero(free)), u);
        return true;
      }
    for (std::size_t w = subset.from; w < subset.to; ++w) {
      Word reached = words[w] & open[w];
      open[w] &= ~reached;
      for (; reached; reached &= reached - 1) {
        const std::size_t value = w * 64 + static_cast<std::size_t>(std::countr_zero(reached));
        parent_[value] = u;
        queue_.push_back(owner_[value]);
      }
    }
  }
  return false;
}

// Matches every variable on the path with the next value on it.
void Matching::rematch(std::size_t value, int last) {
  drop(free_.data(), value);
  for (int u = last;;) {
    const int before = match_[u];
    match_[u] = static_cast<int>(value);
    owner_[value] = u;
    if (device_ && device_->is_following()) rematched.push_back(u);
    if (before < 0) return;
    value = static_cast<std::size_t>(before);
    u = parent_[value];
  }
}

bool Matching::split(Engine& engine, Subset& subset) {
  Domains& d = engine.domains();
  measure(d, subset);
  if (subset.last - subset.first == 1 && d.fixed(xs_[order_[subset.first]])) return true;
  find_core(d, subset);
  if (rest_.empty()) return true;
  std::vector<Word>& open = components_.open;
  for (auto* bits : {&open, &closed_}) std::fill(bits->begin() + subset.from, bits->begin() + subset.to, 0);
  for (const int i : rest_) add(open.data(), static_cast<std::size_t>(match_[i]));
  components_.begin(subset.from, subset.to, members_.data());
  fill_ = subset.first;
  alive_ = true;
  const auto row = [&](std::size_t value) { return load(d, owner_[value], subset); };
  for (const int root : rest_) {
    const auto value = static_cast<std::size_t>(match_[root]);
    if (has(open.data(), value))
      components_.search(value, row, [&](const Word* values) { close(engine, subset, values); });
  }
  close_core(engine, subset);
  return alive_;
}

// Moves a complete component to the front. `order_` stays a permutation even after a failure.
void Matching::close(Engine& engine, const Subset& subset, const Word* values) {
  start_here(engine);
  for (std::size_t w = subset.from; w < subset.to; ++w) {
    closed_[w] |= values[w];
    for (Word bits = values[w]; bits; bits &= bits - 1) {
      const int i = owner_[w * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
      place_next(i);
      const Word* words = row(i);
      for (std::size_t v = subset.from; v < subset.to; ++v)
        if (const Word lost = words[v] & ~values[v]) alive_ = alive_ && remove(engine.domains(), i, v, lost);
    }
  }
}

// Finds the core: the variables with a path to free values. If there are none, and the variable with the most values
// leads to all others, the core is the component of this variable.
void Matching::find_core(const Domains& d, const Subset& subset) {
  rest_.assign(order_.begin() + subset.first, order_.begin() + subset.last);
  Word* members = members_.data();
  std::copy(free_.begin() + subset.from, free_.begin() + subset.to, members + subset.from);
  if (std::any_of(members + subset.from, members + subset.to, [](Word w) { return w != 0; })) gather(d, subset);
  if (rest_.size() < subset.size()) return;
  if (!reaches_all(d, subset.largest, subset)) return;
  add(members, static_cast<std::size_t>(match_[subset.largest]));
  std::erase(rest_, subset.largest);
  gather(d, subset);
}

// Adds to the core, in a few rounds, the variables whose domains have a value of the core. The search handles the
// variables that remain.
void Matching::gather(const Domains& d, const Subset& subset) {
  constexpr int kRounds = 4;
  const std::span<const Word> members{members_.data() + subset.from, subset.to - subset.from};
  const Value base = base_ + static_cast<Value>(subset.from * 64);
  for (int round = 0; round < kRounds && !rest_.empty(); ++round) {
    std::size_t remaining = 0;
    for (std::size_t k = 0; k < rest_.size(); ++k) {
      if (k + kAhead < rest_.size()) d.prefetch(xs_[rest_[k + kAhead]]);
      const int i = rest_[k];
      if (!d.meets(xs_[i], base, members)) {
        rest_[remaining++] = i;
        continue;
      }
      add(members_.data(), static_cast<std::size_t>(match_[i]));
    }
    if (remaining == rest_.size()) return;
    rest_.erase(rest_.begin() + static_cast<std::ptrdiff_t>(remaining), rest_.end());
  }
}

bool Matching::reaches_all(const Domains& d, int pivot, const Subset& subset) {
  std::vector<Word>& open = components_.open;
  std::fill(open.begin() + subset.from, open.begin() + subset.to, 0);
  for (const int i : rest_) add(open.data(), static_cast<std::size_t>(match_[i]));
  drop(open.data(), static_cast<std::size_t>(match_[pivot]));
  std::size_t unreached = rest_.size() - 1;
  queue_.assign(1, pivot);
  for (std::size_t next = 0; next < queue_.size() && unreached > 0; ++next) {
    const Word* words = load(d, queue_[next], subset);
    for (std::size_t w = subset.from; w < subset.to; ++w) {
      Word reached = words[w] & open[w];
      open[w] &= ~reached;
      for (; reached; reached &= reached - 1, --unreached)
        queue_.push_back(owner_[w * 64 + static_cast<std::size_t>(std::countr_zero(reached))]);
    }
  }
  return unreached == 0;
}

// Filters the variables whose component is not known yet, without a search: together with the core (the variables and
// values that all lead to each other) they form one component. They lose only the values of closed components.
void Matching::close_core(Engine& engine, const Subset& subset) {
  if (fill_ < subset.last) start_here(engine);
  Domains& d = engine.domains();
  for (std::size_t w = subset.from; w < subset.to; ++w) {
    if (!closed_[w]) continue;
    const Value base = base_ + static_cast<Value>(w * 64);
    for (std::size_t p = fill_; p < subset.last && alive_; ++p) {
      if (p + kAhead < subset.last) d.prefetch(xs_[order_[p + kAhead]]);
      const int i = order_[p];
      const Word words = loaded_[i] == call_ ? row(i)[w] : d.row_word(xs_[i], base);
      if (const Word lost = words & closed_[w]) alive_ = remove(d, i, w, lost);
    }
  }
}

void Matching::place_next(int i) {
  const int other = order_[fill_];
  std::swap(order_[fill_], order_[position_[i]]);
  position_[other] = position_[i];
  position_[i] = fill_++;
}

// Moves the labelled components to the front of the subset, so that the core is behind them, and removes lost values.
// Returns false if a domain becomes empty.
bool Matching::settle(Engine& engine, const Subset& subset, std::span<different::Label> labels,
                      std::span<const different::Loss> losses) {
  std::sort(labels.begin(), labels.end(), [](const auto& a, const auto& b) { return a.label < b.label; });
  fill_ = subset.first;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    if (k == 0 || labels[k].label != labels[k - 1].label) start_here(engine);
    place_next(static_cast<int>(labels[k].member));
  }
  if (fill_ < subset.last) start_here(engine);
  Domains& d = engine.domains();
  for (std::size_t k = 0; k < losses.size(); ++k) {
    if (k + kAhead < losses.size()) d.prefetch(xs_[losses[k + kAhead].member]);
    if (!remove(d, static_cast<int>(losses[k].member), losses[k].word, losses[k].values)) return false;
  }
  return true;
}

void Matching::start_here(Engine& engine) {
  engine.trail().set(starts_ + fill_ / 64, engine.trail().get(starts_ + fill_ / 64) | Word{1} << (fill_ % 64));
}

bool Matching::remove(Domains& d, int i, std::size_t w, Word lost) {
  for (; lost; lost &= lost - 1)
    if (!d.remove(xs_[i], base_ + static_cast<Value>(w * 64) + std::countr_zero(lost))) return false;
  return true;
}

}  // namespace elimina::cp
