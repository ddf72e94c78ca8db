// Clauses, and sums modulo 2.
#include <memory>
#include <utility>

#include "cp/constraints.hpp"

namespace elimina::cp {

namespace {

// A disjunction of literals. False literals are swapped to the front.
class Clause final : public Propagator {
 public:
  Clause(Views literals, Control control)
      : Propagator(Priority::binary), literals_(std::move(literals)), control_(control) {}

  void attach(Engine& engine) override {
    first_ = engine.trail().make(1, 0);
    control_.attach(engine, *this);
    for (const View x : literals_) engine.subscribe(*this, x, kFix);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    if (control_.idle(d)) return Outcome::entailed;
    if (control_.denied(d)) return all_false(d);
    auto first = static_cast<std::size_t>(engine.trail().get(first_));
    std::size_t open = 0;
    for (std::size_t i = first; i < literals_.size(); ++i) {
      if (d.lo(literals_[i]) == 1) return control_.settle(d, true);
      if (d.hi(literals_[i]) == 0) std::swap(literals_[i], literals_[first++]);
      else if (++open == 2) break;
    }
    engine.trail().set(first_, first);
    if (open == 0) return control_.settle(d, false);
    if (open == 2 || !control_.demanded(d)) return Outcome::fixpoint;
    return d.assign(literals_[first], 1) ? Outcome::entailed : Outcome::failed;
  }

 private:
  Outcome all_false(Domains& d) const {
    for (const View x : literals_)
      if (!d.assign(x, 0)) return Outcome::failed;
    return Outcome::entailed;
  }

  Views literals_;
  Control control_;
  std::size_t first_ = 0;
};

class Odd final : public Propagator {
 public:
  explicit Odd(Views literals) : Propagator(Priority::linear), literals_(std::move(literals)) {}

  void attach(Engine& engine) override {
    for (const View x : literals_) engine.subscribe(*this, x, kFix);
  }

  Outcome propagate(Engine& engine) override {
    Domains& d = engine.domains();
    const View* open = nullptr;
    Value sum = 0;
    for (const View& x : literals_) {
      if (d.fixed(x)) {
        sum ^= d.lo(x);
        continue;
      }
      if (open) return Outcome::fixpoint;
      open = &x;
    }
    if (!open) return sum == 1 ? Outcome::entailed : Outcome::failed;
    return d.assign(*open, 1 - sum) ? Outcome::entailed : Outcome::failed;
  }

 private:
  Views literals_;
};

}  // namespace

void post_clause(Engine& engine, const Views& literals, Control control) {
  engine.post(std::make_unique<Clause>(literals, control));
}

void post_all_true(Engine& engine, const Views& literals, View b) {
  Views negated;
  for (const View x : literals) negated.push_back(negation(x));
  post_clause(engine, negated, Control::reified(negation(b)));
}

void post_odd(Engine& engine, const Views& literals) { engine.post(std::make_unique<Odd>(literals)); }

}  // namespace elimina::cp
