#include "state.hpp"

#include <limits>
#include <numeric>

namespace elimina::consistency {

State::State(const Network& network)
    : network_(network), constant_(network.constant), cells_(network.cells), count_(network.size),
      free_place_(network.size.size(), std::numeric_limits<int>::max()) {
  for (Var v = 0; v < network.count(); ++v) {
    values_.resize(values_.size() + static_cast<std::size_t>(network.size[v]));
    std::iota(values_.end() - network.size[v], values_.end(), 0);
    if (network.size[v] < 2) continue;
    free_place_[v] = free_count_++;
    free_.push_back(v);
  }
  position_ = values_;
}

void State::mark() { marks_.push_back({written_.size(), shrunk_.size(), free_count_, constant_}); }

void State::undo() {
  const Mark& mark = marks_.back();
  for (std::size_t i = written_.size(); i-- > mark.written;) cells_[written_[i].first] = written_[i].second;
  written_.resize(mark.written);
  for (std::size_t i = shrunk_.size(); i-- > mark.shrunk;) count_[shrunk_[i].first] = shrunk_[i].second;
  shrunk_.resize(mark.shrunk);
  free_count_ = mark.free_count;
  constant_ = mark.constant;
  marks_.pop_back();
}

void State::swap(Var v, int from, int to) {
  int* values = values_.data() + network_.first[v];
  int* position = position_.data() + network_.first[v];
  std::swap(values[from], values[to]);
  position[values[from]] = from;
  position[values[to]] = to;
}

void State::shrink(Var v, int count) {
  shrunk_.push_back({v, count_[v]});
  count_[v] = count;
  if (count <= 1) retire(v);
}

void State::retire(Var v) {
  const int from = free_place_[v];
  const Var last = free_[--free_count_];
  std::swap(free_[from], free_[free_count_]);
  free_place_[last] = from;
  free_place_[v] = free_count_;
}

void State::remove(Var v, int x) {
  swap(v, position_[network_.first[v] + x], count_[v] - 1);
  shrink(v, count_[v] - 1);
}

void State::assign(Var v, int x) {
  swap(v, position_[network_.first[v] + x], 0);
  if (count_[v] > 1) shrink(v, 1);
}

}  // namespace elimina::consistency
