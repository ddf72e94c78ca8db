#include "dominance.hpp"

#include <algorithm>

#include "stop.hpp"

namespace elimina::filter::ELIMINA_ISA {

namespace {

struct Place {
  const Factor* factor;
  std::size_t stride;
};

// The most that b costs above a in a factor; forbidden if b is forbidden where a is not.
Cost worst(const Place& place, int size, int a, int b) {
  const auto& cost = place.factor->cost;
  const std::size_t block = place.stride * size;
  Cost most = -forbidden;
  for (std::size_t start = 0; start < cost.size(); start += block) {
    const Cost* at_a = &cost[start + a * place.stride];
    const Cost* at_b = &cost[start + b * place.stride];
    for (std::size_t i = 0; i < place.stride; ++i) {
      if (at_a[i] >= forbidden) continue;
      if (at_b[i] >= forbidden) return forbidden;
      most = std::max(most, at_b[i] - at_a[i]);
    }
  }
  return most;
}

// The value of the least mean cost in the factors.
int cheapest(const std::vector<Place>& places, int size) {
  std::vector<double> mean(size, 0);
  for (const Place& place : places) {
    const auto& cost = place.factor->cost;
    for (std::size_t i = 0; i < cost.size(); ++i)
      mean[i / place.stride % size] += static_cast<double>(cost[i]) * size / static_cast<double>(cost.size());
  }
  return static_cast<int>(std::min_element(mean.begin(), mean.end()) - mean.begin());
}

}  // namespace

bool drop_dominated(const Model& model, std::vector<std::vector<int>>& kept) {
  std::vector<std::vector<Place>> touching(model.count());
  for (const Factor& f : model.factors) {
    std::size_t stride = 1;
    for (std::size_t i = f.scope.size(); i-- > 0;) {
      touching[f.scope[i]].push_back({&f, stride});
      stride *= model.size[f.scope[i]];
    }
  }
  bool changed = false;
  for (Var v = 0; v < model.count(); ++v) {
    check_stop();
    // Testing all pairs costs a domain's size more and removes little more.
    const int b = cheapest(touching[v], model.size[v]);
    std::vector<int> left{b};
    for (int a : kept[v]) {
      if (a == b) continue;
      Cost total = 0;
      for (const Place& place : touching[v]) {
        total += worst(place, model.size[v], a, b);
        if (total >= forbidden / 2) break;
      }
      if (total > 0) left.push_back(a);
    }
    std::sort(left.begin(), left.end());
    changed |= left.size() < kept[v].size();
    kept[v] = left;
  }
  return changed;
}

}  // namespace elimina::filter::ELIMINA_ISA
