// Words of a finite automaton (Pesant, CP 2004): states that are reached from the start, and that reach an end, layer by layer.
#include <algorithm>
#include <memory>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

class Regular final : public Propagator {
 public:
  Regular(Views xs, Automaton automaton) : Propagator(Priority::quadratic), xs_(std::move(xs)), automaton_(std::move(automaton)) {
    reached_.resize((xs_.size() + 1) * states());
    useful_.resize(reached_.size());
  }

  void attach(Engine& engine) override {
    for (const View x : xs_) engine.subscribe(*this, x, kDomain);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    for (const View x : xs_)
      if (!d.set_lo(x, 0) || !d.set_hi(x, automaton_.symbols - 1)) return Outcome::failed;
    go_forward(d);
    return go_back(d) ? Outcome::again : Outcome::failed;
  }

 private:
  std::size_t states() const { return static_cast<std::size_t>(automaton_.states); }
  int next(std::size_t state, Value symbol) const {
    return automaton_.next[state * static_cast<std::size_t>(automaton_.symbols) + static_cast<std::size_t>(symbol)];
  }

  void go_forward(const Domains& d) {
    std::fill(reached_.begin(), reached_.end(), 0);
    reached_[static_cast<std::size_t>(automaton_.start)] = 1;
    for (std::size_t i = 0; i < xs_.size(); ++i)
      for (std::size_t q = 0; q < states(); ++q) {
        if (!reached_[i * states() + q]) continue;
        d.each(xs_[i], [&](Value symbol) {
          if (const int to = next(q, symbol); to >= 0) reached_[(i + 1) * states() + static_cast<std::size_t>(to)] = 1;
        });
      }
  }

  bool go_back(Domains& d) {
    std::fill(useful_.begin(), useful_.end(), 0);
    const std::size_t n = xs_.size();
    for (std::size_t q = 0; q < states(); ++q) useful_[n * states() + q] = reached_[n * states() + q] && automaton_.accepting[q];
    for (std::size_t i = n; i-- > 0;) {
      bool alive = true;
      d.each(xs_[i], [&](Value symbol) {
        if (alive && !lead_on(i, symbol)) alive = d.remove(xs_[i], symbol);
      });
      if (!alive) return false;
    }
    return useful_[static_cast<std::size_t>(automaton_.start)];
  }

  // Marks the states that a symbol leads on from.
  bool lead_on(std::size_t i, Value symbol) {
    bool any = false;
    for (std::size_t q = 0; q < states(); ++q) {
      if (!reached_[i * states() + q]) continue;
      const int to = next(q, symbol);
      if (to < 0 || !useful_[(i + 1) * states() + static_cast<std::size_t>(to)]) continue;
      useful_[i * states() + q] = 1;
      any = true;
    }
    return any;
  }

  Views xs_;
  Automaton automaton_;
  std::vector<std::uint8_t> reached_, useful_;
};

}  // namespace

void post_regular(Engine& engine, const Views& xs, Automaton automaton) {
  engine.post(std::make_unique<Regular>(xs, std::move(automaton)));
}

}  // namespace elimina::cp
