#include "climb.hpp"

#include <algorithm>
#include <random>

#include "stop.hpp"

namespace elimina::filter::ELIMINA_ISA {

namespace {

constexpr std::int64_t kLook = 16;  // steps between looks at whether to stop

class Tabu {
 public:
  Tabu(const Model& model, std::vector<int> start, Cost penalty, std::uint64_t seed)
      : model_(model), penalty_(penalty), random_(seed), value_(std::move(start)), gain_(model.count()),
        until_(model.count()), touching_(model.count()) {
    for (Var v = 0; v < model.count(); ++v) {
      gain_[v].assign(model.size[v], 0);
      until_[v].assign(model.size[v], 0);
    }
    for (std::size_t i = 0; i < model.factors.size(); ++i)
      for (Var v : model.factors[i].scope) touching_[v].push_back(static_cast<int>(i));
    total_ = model.constant;
    for (const Factor& f : model.factors) {
      total_ += cell(f, -1, 0);
      spread(f, 1);
    }
  }

  Solution run(std::int64_t steps) {
    best_ = {value_, total_};
    std::int64_t since = 0;
    for (std::int64_t step = 1; step <= steps && (step % kLook != 0 || !stopped()); ++step) {
      move(step);
      if (total_ < best_.cost) {
        best_ = {value_, total_};
        since = 0;
      } else if (++since > 2000 + 10 * model_.count()) {
        kick();
        since = 0;
      }
    }
    if (best_.cost < forbidden) best_.cost = model_.at(best_.value);
    return best_;
  }

 private:
  Cost cell(const Factor& f, Var changed, int x) const {
    std::size_t place = 0;
    for (Var v : f.scope) place = place * model_.size[v] + (v == changed ? x : value_[v]);
    return std::min(f.cost[place], penalty_);
  }

  // Adds what a factor means for each value of each of its variables, the others as they are.
  void spread(const Factor& f, Cost sign) {
    std::size_t place = 0, stride = 1;
    for (Var v : f.scope) place = place * model_.size[v] + value_[v];
    for (std::size_t i = f.scope.size(); i-- > 0;) {
      const Var v = f.scope[i];
      const std::size_t base = place - stride * value_[v];
      for (int x = 0; x < model_.size[v]; ++x) gain_[v][x] += sign * std::min(f.cost[base + stride * x], penalty_);
      stride *= model_.size[v];
    }
  }

  void set(Var v, int x) {
    total_ += gain_[v][x] - gain_[v][value_[v]];
    for (int i : touching_[v]) spread(model_.factors[i], -1);
    value_[v] = x;
    for (int i : touching_[v]) spread(model_.factors[i], 1);
  }

  void move(std::int64_t step) {
    Cost least = forbidden;
    Var chosen = -1;
    int to = 0;
    std::uint64_t ties = 0;
    for (Var v = 0; v < model_.count(); ++v)
      for (int x = 0; x < model_.size[v]; ++x) {
        if (x == value_[v]) continue;
        const Cost change = gain_[v][x] - gain_[v][value_[v]];
        if (change > least || (until_[v][x] > step && total_ + change >= best_.cost)) continue;
        ties = change < least ? 1 : ties + 1;
        if (ties > 1 && random_() % ties) continue;
        least = change;
        chosen = v;
        to = x;
      }
    if (chosen < 0) return;
    until_[chosen][value_[chosen]] = step + 5 + static_cast<std::int64_t>(random_() % 10);
    set(chosen, to);
  }

  void kick() {
    for (Var v = 0; v < model_.count(); ++v)
      if (value_[v] != best_.value[v]) set(v, best_.value[v]);
    for (int i = 0; i < 3 + model_.count() / 20; ++i) {
      const Var v = static_cast<Var>(random_() % model_.count());
      set(v, static_cast<int>(random_() % model_.size[v]));
    }
  }

  const Model& model_;
  Cost penalty_, total_ = 0;
  std::mt19937_64 random_;
  std::vector<int> value_;
  std::vector<std::vector<Cost>> gain_;
  std::vector<std::vector<std::int64_t>> until_;
  std::vector<std::vector<int>> touching_;
  Solution best_;
};

}  // namespace

Solution climb(const Model& model, std::vector<int> start, Cost penalty, std::int64_t steps, std::uint64_t seed) {
  if (model.count() == 0) return {{}, model.constant};
  return Tabu(model, std::move(start), penalty, seed).run(steps);
}

}  // namespace elimina::filter::ELIMINA_ISA
