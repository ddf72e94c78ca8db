#include "dcop/traversal.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace elimina::dcop {
namespace {

constexpr i64 kUnranked = std::numeric_limits<i64>::min();

// Returns a hash of a variable's number (Fibonacci hashing), which breaks ties between ranks. If the numbers themselves
// broke ties, a chain of variables with mostly ascending numbers could send a quadratic number of messages: each wave
// would run through all lower numbers, after the waves that began there.
std::uint32_t scattered(int variable) { return std::uint32_t(variable) * 2654435769u; }

}  // namespace

Traversal::Traversal(int variable, i64 rank, std::vector<int> neighbours, bool prefers_reached)
    : key_(rank, variable), neighbours_(std::move(neighbours)), prefers_reached_(prefers_reached), highest_(key_) {
  if (!std::ranges::is_sorted(neighbours_)) throw std::invalid_argument("neighbours are not sorted");
  ranks_.assign(neighbours_.size(), kUnranked);
  silent_.assign(neighbours_.size(), 0);
  reached_.assign(neighbours_.size(), 0);
  unranked_ = i64(neighbours_.size());
}

bool Traversal::is_lower(Key key, Key other) {
  return std::pair(key.first, scattered(key.second)) < std::pair(other.first, scattered(other.second));
}

int Traversal::place_of(int neighbour) const {
  const auto position = std::ranges::lower_bound(neighbours_, neighbour);
  if (position == neighbours_.end() || *position != neighbour)
    throw std::invalid_argument("a message from a variable that is no neighbour");
  return int(position - neighbours_.begin());
}

void Traversal::start(std::vector<Sent>& out) {
  for (const int neighbour : neighbours_) out.push_back({neighbour, {Kind::rank, key_.first}});
  if (neighbours_.empty()) mark(out);
}

void Traversal::receive(int source, Body body, std::vector<Sent>& out) {
  if (body.kind == Kind::marked) return add_untried(source, body, out);
  if (body.kind == Kind::rank) {
    i64& rank = ranks_[place_of(source)];
    unranked_ -= rank == kUnranked;
    rank = body.first;
    if (!unranked_) begin(out);
    return;
  }
  if (unranked_) {
    early_.emplace_back(source, body);
    return;
  }
  switch (body.kind) {
    case Kind::elect: return process_wave(source, {body.first, int(body.second)}, out);
    case Kind::mark: {
      char& reached = reached_[place_of(source)];
      reached_count_ += !reached;
      reached = 1;
      out.push_back({source, {Kind::marked, visit_, reached_count_}});
      return;
    }
    case Kind::visit: return become_visited(source, body, out);
    case Kind::back:
      children_.push_back(source);
      visits_ = body.first;
      return pass_on(out);
    default: return;
  }
}

// Begins a wave if no neighbour has a higher rank; other variables cannot win.
void Traversal::begin(std::vector<Sent>& out) {
  for (std::size_t n = 0; n < neighbours_.size(); ++n)
    highest_ = std::max(highest_, Key(ranks_[n], neighbours_[n]), is_lower);
  if (highest_ == key_) join_wave(key_, -1, out);
  const auto early = std::exchange(early_, {});
  for (const auto& [source, body] : early) receive(source, body, out);
}

void Traversal::join_wave(Key key, int source, std::vector<Sent>& out) {
  waves_ = true;
  wave_ = key;
  from_ = source;
  silent_count_ = 0;
  for (std::size_t n = 0; n < neighbours_.size(); ++n) {
    silent_[n] = neighbours_[n] != source;
    silent_count_ += silent_[n];
    if (silent_[n]) out.push_back({neighbours_[n], {Kind::elect, key.first, key.second}});
  }
}

// Processes a wave or its echo. The wave ends here if it cannot win: its rank is lower than that of the best wave so
// far, or than that of this variable or a neighbour.
void Traversal::process_wave(int source, Key key, std::vector<Sent>& out) {
  if (is_lower(key, highest_) || (waves_ && is_lower(key, wave_))) return;
  if (!waves_ || is_lower(wave_, key)) {
    join_wave(key, source, out);
  } else {
    char& silent = silent_[place_of(source)];
    silent_count_ -= silent;
    silent = 0;
  }
  if (silent_count_) return;
  if (from_ >= 0) out.push_back({from_, {Kind::elect, key.first, key.second}});
  else mark(out);
}

void Traversal::become_visited(int source, Body body, std::vector<Sent>& out) {
  parent_ = source;
  visits_ = body.second;
  above_.emplace_back(source, body.first);
  mark(out);
}

// Notifies the neighbours, except the parent, of the visit; the token moves on once all have answered.
void Traversal::mark(std::vector<Sent>& out) {
  visit_ = visits_++;
  unknown_ = i64(neighbours_.size()) - (parent_ >= 0);
  for (const int neighbour : neighbours_)
    if (neighbour != parent_) out.push_back({neighbour, {Kind::mark, visit_}});
  if (!unknown_) pass_on(out);
}

// Records a neighbour as an ancestor, or as a possible next stop of the token; preferred stops come last.
void Traversal::add_untried(int source, Body body, std::vector<Sent>& out) {
  if (body.first >= 0) {
    above_.emplace_back(source, body.first);
  } else {
    const std::pair<i64, Key> candidate(prefers_reached_ ? body.second : 0, Key(ranks_[place_of(source)], source));
    untried_.insert(std::ranges::upper_bound(untried_, candidate), candidate);
  }
  if (!--unknown_) pass_on(out);
}

// Sends the token to the last neighbour in `untried_` that has not been visited (the preferred one) or, if there is
// none, back to the parent.
void Traversal::pass_on(std::vector<Sent>& out) {
  while (!untried_.empty()) {
    const int next = untried_.back().second.second;
    untried_.pop_back();
    if (reached_[place_of(next)]) continue;
    out.push_back({next, {Kind::visit, visit_, visits_}});
    return;
  }
  done_ = true;
  if (parent_ >= 0) out.push_back({parent_, {Kind::back, visits_}});
}

namespace {

// Function objects that write numbers one after another, or read them in the same order.
struct Writer {
  std::vector<i64> numbers;

  template <class T>
  void operator()(const T& value) {
    if constexpr (requires { value.begin(); }) {
      (*this)(i64(value.size()));
      for (const auto& item : value) (*this)(item);
    } else if constexpr (requires { value.second.kind; }) {
      (*this)(value.first);
      for (const i64 number : {i64(value.second.kind), value.second.first, value.second.second}) (*this)(number);
    } else if constexpr (requires { value.second; }) {
      (*this)(value.first);
      (*this)(value.second);
    } else {
      numbers.push_back(i64(value));
    }
  }
};

struct Reader {
  std::span<const i64> numbers;

  i64 next() {
    if (numbers.empty()) throw std::invalid_argument("the state of a traversal is too short");
    const i64 number = numbers.front();
    numbers = numbers.subspan(1);
    return number;
  }

  template <class T>
  void operator()(T& value) {
    if constexpr (requires { value.begin(); }) {
      const i64 size = next();
      if (size < 0 || size > i64(numbers.size())) throw std::invalid_argument("the state of a traversal is too short");
      value.resize(std::size_t(size));
      for (auto& item : value) (*this)(item);
    } else if constexpr (requires { value.second.kind; }) {
      (*this)(value.first);
      value.second.kind = Kind(next());
      value.second.first = next();
      value.second.second = next();
    } else if constexpr (requires { value.second; }) {
      (*this)(value.first);
      (*this)(value.second);
    } else {
      value = T(next());
    }
  }
};

}  // namespace

template <class Self, class Visit>
void Traversal::each(Self& self, Visit&& visit) {
  visit(self.key_), visit(self.neighbours_), visit(self.prefers_reached_), visit(self.ranks_), visit(self.unranked_),
      visit(self.highest_), visit(self.early_);
  visit(self.waves_), visit(self.wave_), visit(self.from_), visit(self.silent_), visit(self.silent_count_),
      visit(self.reached_), visit(self.reached_count_);
  visit(self.untried_), visit(self.unknown_), visit(self.visits_), visit(self.visit_), visit(self.parent_),
      visit(self.done_), visit(self.children_), visit(self.above_);
}

std::vector<i64> Traversal::state() const {
  Writer writer;
  each(*this, writer);
  return writer.numbers;
}

Traversal Traversal::of_state(std::span<const i64> state) {
  Traversal made(0, 0, {}, false);
  Reader reader{state};
  each(made, reader);
  return made;
}

}  // namespace elimina::dcop
