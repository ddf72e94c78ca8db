#include "order/anneal.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace elimina::order {
namespace {

constexpr std::size_t threshold_count = 1024;
constexpr std::int64_t proposals_per_temperature = 8192;
// Seconds for a proposal, and for a word of its sets, on the machine VM of bench/RESULTS.md.
constexpr double proposal_seconds = 25e-9, word_seconds = 5e-9;

// The tree's nodes are places for variables. Swapping a vertex with its parent exchanges the variables of the two
// places, so the separator of the upper place does not change.
template <std::size_t Words>
class TreeAnnealer final : public Annealer {
  using Bits = std::array<std::uint64_t, Words>;

 public:
  TreeAnnealer(const Patch& patch, double limit)
      : graph_(patch.graph), inner_(patch.inner), limit_(std::exp2(limit)), best_(patch.order), adjacent_(inner_) {
    for (Vertex v = 0; v < inner_; ++v) {
      adjacent_[v] = {};
      for (Vertex u : graph_.neighbours[v]) set(adjacent_[v], u);
    }
    load(best_);
    best_energy_ = energy();
  }

  bool anneal(const Schedule& schedule, Random& random, Clock& clock) override {
    load(best_);
    bool improved = false;
    const std::int64_t total = schedule.sweeps * inner_;
    const double cooling = std::log(schedule.cold / schedule.hot);
    std::int64_t since_check = 0;
    for (std::int64_t done = 0; done < total;) {
      const double progress = static_cast<double>(done) / static_cast<double>(total);
      set_temperature(schedule.hot * std::exp(cooling * progress));
      const std::int64_t batch = std::min(proposals_per_temperature, total - done);
      for (std::int64_t i = 0; i < batch; ++i) propose(random.next());
      done += batch;
      clock.count(static_cast<double>(batch) * (proposal_seconds + word_seconds * Words));
      since_check += batch;
      if (since_check >= inner_ || done == total) {
        since_check = 0;
        improved |= remember();
      }
      if (clock.expired()) break;
    }
    return improved;
  }

  const Order& best() const override { return best_; }

 private:
  static void set(Bits& bits, Vertex v) { bits[v / 64] |= std::uint64_t{1} << (v % 64); }
  static void clear(Bits& bits, Vertex v) { bits[v / 64] &= ~(std::uint64_t{1} << (v % 64)); }
  static bool has(const Bits& bits, Vertex v) { return bits[v / 64] >> (v % 64) & 1; }

  double product(const Bits& bits) const {
    double result = 1;
    for (std::size_t w = 0; w < Words; ++w)
      for (std::uint64_t word = bits[w]; word; word &= word - 1) result *= graph_.size[w * 64 + std::countr_zero(word)];
    return result;
  }

  double energy(double message, double size) const {
    const double cells = message * size;
    if (message <= limit_) return cells;
    const double excess = message / limit_;
    return cells * (1 + excess * excess);
  }

  double energy() const {
    double sum = 0;
    for (Vertex node = 0; node < inner_; ++node) sum += energy(message_[node], graph_.size[variable_[node]]);
    return sum;
  }

  void load(const Order& order) {
    separator_.assign(inner_, Bits{});
    variable_.assign(order.begin(), order.end());
    parent_.assign(inner_, none);
    child_.assign(inner_, none);
    sibling_.assign(inner_, none);
    message_.resize(inner_);
    std::vector<Vertex> node_of(graph_.count(), none);
    for (Vertex node = 0; node < inner_; ++node) node_of[order[node]] = node;
    for (Vertex node = 0; node < inner_; ++node) {
      auto& separator = separator_[node];
      for (Vertex u : graph_.neighbours[order[node]])
        if (node_of[u] > node) set(separator, u);
      for (Vertex c = child_[node]; c != none; c = sibling_[c]) unite(separator, separator_[c]);
      clear(separator, order[node]);
      message_[node] = product(separator);
      Vertex parent = none;
      for (std::size_t w = 0; w < Words; ++w)
        for (std::uint64_t word = separator[w]; word; word &= word - 1)
          parent = std::min(parent, node_of[w * 64 + static_cast<std::size_t>(std::countr_zero(word))]);
      if (parent == none) continue;
      parent_[node] = parent;
      sibling_[node] = child_[parent];
      child_[parent] = node;
    }
  }

  static void unite(Bits& to, const Bits& from) {
    for (std::size_t w = 0; w < Words; ++w) to[w] |= from[w];
  }

  // Sets the thresholds of a temperature. A swap is accepted if the pair's cost grows by a factor below 2^(temperature
  // * e), where e is exponentially distributed.
  void set_temperature(double temperature) {
    for (std::size_t i = 0; i < threshold_count; ++i)
      threshold_[i] = std::exp2(-temperature * std::log((static_cast<double>(i) + 0.5) / threshold_count));
  }

  void propose(std::uint64_t random) {
    const auto low = static_cast<Vertex>(((random >> 32) * inner_) >> 32);
    const Vertex high = parent_[low];
    if (high == none) return;
    const Vertex v = variable_[low], p = variable_[high];
    const double size_v = graph_.size[v], size_p = graph_.size[p];
    const double allowed =
        (energy(message_[low], size_v) + energy(message_[high], size_p)) * threshold_[random % threshold_count];
    const double upper = energy(message_[high], size_v);
    if (upper > allowed) return;
    Bits separator;
    for (std::size_t w = 0; w < Words; ++w) separator[w] = adjacent_[p][w] & separator_[high][w];
    for (Vertex c = child_[high]; c != none; c = sibling_[c])
      if (c != low) unite(separator, separator_[c]);
    for (Vertex c = child_[low]; c != none; c = sibling_[c])
      if (has(separator_[c], p)) unite(separator, separator_[c]);
    set(separator, v);
    clear(separator, p);
    const double message = product(separator);
    if (!(upper + energy(message, size_p) <= allowed)) return;
    separator_[low] = separator;
    message_[low] = message;
    variable_[low] = p;
    variable_[high] = v;
    exchange_children(low, high, p);
  }

  // Moves children after the swap of two places. The lower place now holds p: children whose messages contain p hang
  // below it, the others below the upper place.
  void exchange_children(Vertex low, Vertex high, Vertex p) {
    Vertex to_low = none, to_high = low;
    const auto distribute = [&](Vertex c) {
      while (c != none) {
        const Vertex next = sibling_[c];
        if (c != low) {
          const bool down = has(separator_[c], p);
          Vertex& list = down ? to_low : to_high;
          sibling_[c] = list;
          parent_[c] = down ? low : high;
          list = c;
        }
        c = next;
      }
    };
    const Vertex first_low = child_[low], first_high = child_[high];
    distribute(first_high);
    distribute(first_low);
    // `low` is the last of its parent's children, so it has no next sibling.
    sibling_[low] = none;
    child_[low] = to_low;
    child_[high] = to_high;
  }

  bool remember() {
    const double now = energy();
    if (!(now < best_energy_ * (1 - 1e-12))) return false;
    best_energy_ = now;
    std::vector<Vertex> waiting(inner_, 0);
    for (Vertex node = 0; node < inner_; ++node)
      if (parent_[node] != none) ++waiting[parent_[node]];
    best_.clear();
    for (Vertex leaf = 0; leaf < inner_; ++leaf) {
      if (child_[leaf] != none) continue;
      for (Vertex node = leaf;;) {
        best_.push_back(variable_[node]);
        node = parent_[node];
        if (node == none || --waiting[node] > 0) break;
      }
    }
    return true;
  }

  Graph graph_;
  Vertex inner_;
  double limit_;
  Order best_;
  double best_energy_;
  std::vector<Bits> adjacent_, separator_;
  std::vector<Vertex> variable_, parent_, child_, sibling_;
  std::vector<double> message_;
  std::array<double, threshold_count> threshold_;
};

}  // namespace

std::unique_ptr<Annealer> make_annealer(const Patch& patch, double limit) {
  const Vertex n = patch.graph.count();
  if (n <= 64) return std::make_unique<TreeAnnealer<1>>(patch, limit);
  if (n <= 128) return std::make_unique<TreeAnnealer<2>>(patch, limit);
  if (n <= 256) return std::make_unique<TreeAnnealer<4>>(patch, limit);
  if (n <= 384) return std::make_unique<TreeAnnealer<6>>(patch, limit);
  if (n <= 512) return std::make_unique<TreeAnnealer<8>>(patch, limit);
  if (n <= 1024) return std::make_unique<TreeAnnealer<16>>(patch, limit);
  return std::make_unique<TreeAnnealer<largest_patch / 64>>(patch, limit);
}

}  // namespace elimina::order
