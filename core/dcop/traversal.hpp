// Construction of a pseudo-tree by messages. First a root is elected: candidates start waves, and only the wave of the
// highest rank reaches all variables. Then a token goes from neighbour to neighbour, depth first. Every edge of the
// graph of cost functions then leads from a variable to an ancestor of the variable. A visited variable notifies all
// its neighbours before the token goes on, so that the token takes edges of the tree only (Awerbuch 1985, "A new
// distributed depth-first-search algorithm"). Messages may come in any order, and the tree does not depend on this
// order.
#pragma once
#include <span>
#include <utility>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::dcop {

enum class Kind : int {
  rank,    // a rank, to each neighbour
  elect,   // a wave out and back (echo with extinction, Chang 1982): rank and variable
  mark,    // number of the token's first visit, to all neighbours except the one that sent the token
  marked,  // answer to `mark`: number of the own visit or -1, and number of neighbours visited so far
  visit,   // the token on its way down: the sender's visit, and number of visits
  back,    // the token on its way up: number of visits
};
constexpr int kKinds = 6;

struct Body {
  Kind kind;
  i64 first = 0, second = 0;
};

struct Sent {
  int target;
  Body body;
};

// The state of one variable in the construction.
class Traversal {
 public:
  // `prefers_reached`: the token goes first to the neighbours with the most visited neighbours, whatever their ranks.
  Traversal(int variable, i64 rank, std::vector<int> neighbours, bool prefers_reached);

  // `start` begins the construction, and `receive` takes a message. Both append the messages to send to `out`.
  void start(std::vector<Sent>& out);
  void receive(int source, Body body, std::vector<Sent>& out);

  int variable() const { return key_.second; }
  i64 visit() const { return visit_; }    // number of the token's first visit in this component; -1 before it
  int parent() const { return parent_; }  // variable that the token came from; -1: none
  const std::vector<int>& neighbours() const { return neighbours_; }
  bool done() const { return done_; }                             // true after the token has left for the last time
  const std::vector<int>& children() const { return children_; }  // children, in the order of visits
  // Neighbours that are ancestors, each with the number of the token's first visit to it.
  const std::vector<std::pair<int, i64>>& above() const { return above_; }

  // Returns the whole state, as numbers.
  std::vector<i64> state() const;
  static Traversal of_state(std::span<const i64> state);

 private:
  using Key = std::pair<i64, int>;  // rank, and the variable as tie-breaker

  static bool is_lower(Key key, Key other);  // order of the election

  void begin(std::vector<Sent>& out);
  void join_wave(Key key, int source, std::vector<Sent>& out);
  void process_wave(int source, Key key, std::vector<Sent>& out);
  void become_visited(int source, Body body, std::vector<Sent>& out);
  void mark(std::vector<Sent>& out);
  void add_untried(int source, Body body, std::vector<Sent>& out);
  void pass_on(std::vector<Sent>& out);
  int place_of(int neighbour) const;
  template <class Self, class Visit>
  static void each(Self& self, Visit&& visit);  // visits all members in a fixed order

  Key key_;
  std::vector<int> neighbours_;
  bool prefers_reached_ = false;
  std::vector<i64> ranks_;  // ranks of the neighbours
  i64 unranked_ = 0;        // number of neighbours with unknown ranks
  Key highest_;
  std::vector<std::pair<int, Body>> early_;
  // The best wave so far. `waves_`: true if there is one. `wave_`, `from_`: its key and sender. `silent_`: for each
  // neighbour, true if its answer is awaited; `silent_count_`: number of these neighbours.
  bool waves_ = false;
  Key wave_{};
  int from_ = -1;
  std::vector<char> silent_;
  i64 silent_count_ = 0;
  // The token. `reached_`: for each neighbour, true if it has been visited; `reached_count_`: number of these
  // neighbours. `untried_`: possible next stops. `unknown_`: number of neighbours without an answer. `visits_`: number
  // of visits so far.
  std::vector<char> reached_;
  i64 reached_count_ = 0;
  std::vector<std::pair<i64, Key>> untried_;
  i64 unknown_ = 0, visits_ = 0;
  i64 visit_ = -1;
  int parent_ = -1;
  bool done_ = false;
  std::vector<int> children_;
  std::vector<std::pair<int, i64>> above_;
};

}  // namespace elimina::dcop
