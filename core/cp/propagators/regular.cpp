// Words of a finite automaton (Pesant, CP 2004). There is a layer of states before each symbol and after the last one.
// Trailed bits mark the states of a layer that are reachable from the start state and lead to a last state. A change
// propagates from its layer in both directions, as far as states change.
#include <algorithm>
#include <bit>
#include <memory>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

// A deterministic automaton: next[state * symbols + symbol] is a state or -1.
struct Automaton {
  int states, symbols;
  std::vector<int> next;
  int start;
  std::vector<std::uint8_t> accepting;
};

class Regular final : public Propagator {
 public:
  Regular(Views xs, Automaton automaton)
      : Propagator(Priority::quadratic), xs_(std::move(xs)), automaton_(std::move(automaton)) {
    words_ = static_cast<std::size_t>(automaton_.states + 63) / 64;
    fresh_.resize(words_);
    is_changed_.resize(xs_.size() + 1);
    repeats_ = repeats(xs_);
  }

  void attach(Engine& engine) override {
    Trail& trail = engine.trail();
    alive_ = trail.make((xs_.size() + 1) * words_, ~std::uint64_t{0});
    if (automaton_.states % 64)
      for (std::size_t i = 0; i <= xs_.size(); ++i)
        trail.set(word(i, words_ - 1), ~std::uint64_t{0} >> (64 - automaton_.states % 64));
    std::fill(fresh_.begin(), fresh_.end(), 0);
    fresh_[static_cast<std::size_t>(automaton_.start) / 64] = std::uint64_t{1} << (automaton_.start % 64);
    for (std::size_t w = 0; w < words_; ++w) trail.set(word(0, w), fresh_[w]);
    for (std::size_t q = 0; q < automaton_.accepting.size(); ++q)
      if (!automaton_.accepting[q]) drop(trail, xs_.size(), q);
    for (std::size_t i = 0; i < xs_.size(); ++i) engine.subscribe(*this, xs_[i], kDomain, static_cast<int>(i));
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (xs_.empty()) return is_empty(engine.trail(), 0) ? Outcome::failed : Outcome::entailed;
    if (touched.empty()) return Outcome::fixpoint;
    for (const int i : touched)
      if (!d.set_lo(xs_[static_cast<std::size_t>(i)], 0) ||
          !d.set_hi(xs_[static_cast<std::size_t>(i)], automaton_.symbols - 1))
        return Outcome::failed;
    const auto [first, last] = std::minmax_element(touched.begin(), touched.end());
    std::fill(is_changed_.begin(), is_changed_.end(), 0);
    for (const int i : touched) is_changed_[static_cast<std::size_t>(i)] = 1;
    const std::size_t end = go_forward(engine, static_cast<std::size_t>(*first), static_cast<std::size_t>(*last));
    if (is_empty(engine.trail(), end) || !go_back(engine, end, static_cast<std::size_t>(*first)))
      return Outcome::failed;
    return repeats_ ? Outcome::again : Outcome::fixpoint;
  }

 private:
  int next(std::size_t state, Value symbol) const {
    return automaton_.next[state * static_cast<std::size_t>(automaton_.symbols) + static_cast<std::size_t>(symbol)];
  }
  std::size_t word(std::size_t layer, std::size_t w) const { return alive_ + layer * words_ + w; }
  bool is_alive(const Trail& trail, std::size_t layer, std::size_t q) const {
    return trail.get(word(layer, q / 64)) >> (q % 64) & 1;
  }
  void drop(Trail& trail, std::size_t layer, std::size_t q) const {
    trail.set(word(layer, q / 64), trail.get(word(layer, q / 64)) & ~(std::uint64_t{1} << (q % 64)));
  }

  bool is_empty(const Trail& trail, std::size_t layer) const {
    for (std::size_t w = 0; w < words_; ++w)
      if (trail.get(word(layer, w))) return false;
    return true;
  }

  template <class F>
  void each_state(const Trail& trail, std::size_t layer, F f) const {
    for (std::size_t w = 0; w < words_; ++w)
      for (std::uint64_t bits = trail.get(word(layer, w)); bits; bits &= bits - 1)
        f(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }

  void read_symbols(const Domains& d, std::size_t i) {
    symbols_.clear();
    d.each(xs_[i], [&](Value symbol) { symbols_.push_back(symbol); });
  }

  // Keeps states that are still reached; returns the last visited layer. `is_changed_`: marks positions whose states or
  // domain have changed.
  std::size_t go_forward(Engine& engine, std::size_t first, std::size_t last) {
    Trail& trail = engine.trail();
    std::size_t end = first;
    for (std::size_t i = first; i < xs_.size() && (i <= last || is_changed_[i]); ++i) {
      end = i + 1;
      if (!is_changed_[i]) continue;
      read_symbols(engine.domains(), i);
      std::fill(fresh_.begin(), fresh_.end(), 0);
      each_state(trail, i, [&](std::size_t q) {
        for (const Value symbol : symbols_)
          if (const int to = next(q, symbol); to >= 0)
            fresh_[static_cast<std::size_t>(to) / 64] |= std::uint64_t{1} << (to % 64);
      });
      for (std::size_t w = 0; w < words_; ++w) {
        const std::uint64_t old = trail.get(word(i + 1, w)), kept = old & fresh_[w];
        if (kept == old) continue;
        trail.set(word(i + 1, w), kept);
        if (i + 1 < xs_.size()) is_changed_[i + 1] = 1;
      }
    }
    return end;
  }

  bool go_back(Engine& engine, std::size_t end, std::size_t first) {
    for (std::size_t i = end; i-- > 0;) {
      if (!is_changed_[i] && i < first) return true;
      if (is_changed_[i] && !filter(engine, i)) return false;
    }
    return true;
  }

  // At position i, removes states without a transition to the next layer, and symbols without a transition from a
  // remaining state (only from the ends of wide domains). Returns false if no symbol remains.
  bool filter(Engine& engine, std::size_t i) {
    Trail& trail = engine.trail();
    read_symbols(engine.domains(), i);
    leads_on_.assign(symbols_.size(), 0);
    each_state(trail, i, [&](std::size_t q) {
      bool any = false;
      for (std::size_t k = 0; k < symbols_.size(); ++k) {
        const int to = next(q, symbols_[k]);
        if (to < 0 || !is_alive(trail, i + 1, static_cast<std::size_t>(to))) continue;
        leads_on_[k] = 1;
        any = true;
      }
      if (any) return;
      drop(trail, i, q);
      if (i > 0) is_changed_[i - 1] = 1;
    });
    return keep_symbols(engine.domains(), xs_[i]);
  }

  // Removes the symbols of x that do not lead on; if the domain is too wide for that, only moves its bounds.
  bool keep_symbols(Domains& d, View x) const {
    const auto first = std::find(leads_on_.begin(), leads_on_.end(), 1);
    if (first == leads_on_.end()) return false;
    const auto last = std::find(leads_on_.rbegin(), leads_on_.rend(), 1);
    const auto begin = static_cast<std::size_t>(first - leads_on_.begin()),
               end = static_cast<std::size_t>(leads_on_.rend() - last);
    if (!d.set_lo(x, symbols_[begin]) || !d.set_hi(x, symbols_[end - 1])) return false;
    if (symbols_[end - 1] - symbols_[begin] > kListed) return true;
    for (std::size_t k = begin; k < end; ++k)
      if (!leads_on_[k] && !d.remove(x, symbols_[k])) return false;
    return true;
  }

  Views xs_;
  Automaton automaton_;
  std::size_t words_ = 0, alive_ = 0;
  bool repeats_ = false;
  std::vector<std::uint64_t> fresh_;
  std::vector<std::uint8_t> is_changed_, leads_on_;
  Values symbols_;
};

Automaton automaton(const ConstraintCall& call) {
  const Value states = call.value(1), symbols = call.value(2), start = call.value(4);
  const Values next = call.values(3);
  if (states < 1 || symbols < 1 || states > (1 << 24) || symbols > (1 << 24) ||
      static_cast<Value>(next.size()) != states * symbols)
    call.refuse("the table has a row for each state and a column for each symbol");
  const auto check = [&](Value state, Value least) {
    if (state < least || state > states) call.refuse("there is no state " + std::to_string(state));
    return static_cast<int>(state - 1);
  };
  Automaton result{static_cast<int>(states), static_cast<int>(symbols), {}, check(start, 1), {}};
  for (const Value state : next) result.next.push_back(check(state, 0));
  result.accepting.resize(static_cast<std::size_t>(states), 0);
  for (const Value state : call.values(5)) result.accepting[static_cast<std::size_t>(check(state, 1))] = 1;
  return result;
}

}  // namespace

// Posts that values spell a word of an automaton. Arguments: variables, states, symbols, table (states and symbols from
// 1 on, 0: none), first state, last states.
void post_regular(ConstraintCall& call) {
  Views xs = call.views(0);
  for (View& x : xs) x = x - 1;
  call.engine().post(std::make_unique<Regular>(xs, automaton(call)));
}

}  // namespace elimina::cp
