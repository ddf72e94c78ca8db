// AllDifferent's second step, strongly connected components of the residual graph, for a team of threads: the values that a part
// loses, and how it divides. The same code serves kernels (a team is one block or several) and the host.
//
// Nodes are variables; a matched value is its variable's node. Variables that lead to free values are the core. What remains is
// divided by pivots, one for each colour at a time: what leads to the pivot, what it leads to, both (a component), neither.
// Edges between colours are taken from the rows, so that one mask of values serves all colours (Fleischer, Hendrickson and Pinar,
// 'On identifying strongly connected components in parallel', 2000; trimming: McLendon et al., 2005).
#pragma once
#include "config.hpp"

namespace elimina::different {

// Of a variable in a constraint: its number, the first word of its row, and the row's bit that is the constraint's first value.
struct Member {
  u32 variable, row;
  i32 first;
};

// The first and the last bit of a row that are values; bits beyond them mean nothing.
struct Bounds {
  i32 lo, hi;
};

// Members of one constraint (from `members` on) that are to be divided: all, or those that are listed from `list` on.
struct Part {
  u32 members, count, words;
  i32 list;
  u64 board, rows;          // where its scratch memory begins, in words of 64 bits
  u32 first_loss, losses;   // room for what is found
  u32 first_label;
};

// Values of a member, in the constraint's words, that it loses.
struct Loss {
  u32 member, word;
  u64 values;
};

// A component that is not the core; its members have equal labels.
struct Label {
  u32 member;
  i32 label;
};

struct Answer {
  u32 losses, labels, is_complete;
};

struct WordChange {
  u64 value;
  u32 word;
};
struct BoundsChange {
  u32 variable;
  Bounds bounds;
};
struct MatchChange {
  u32 member;
  i32 value;
};

// Everything that a call needs. What the host wrote for it is read once and copied.
struct Call {
  u64* rows;
  Bounds* bounds;
  i32* match;
  const Member* members;
  const WordChange* words;
  const BoundsChange* new_bounds;
  const MatchChange* matches;
  const Part* host_parts;
  const u32* host_lists;
  u32 word_count, bounds_count, match_count, part_count, list_count;
  Part* parts;
  u32* lists;
  u64* scratch;
  Loss* losses;
  Label* labels;
  Answer* answers;
  u32* barriers;    // two for each part, and one for all
  u32* done;        // the host's
  u32 ticket, blocks, rounds;   // what `done` becomes; of a part's team; most rounds
};

// Words of 64 bits for what a part keeps beside its rows.
inline ELIMINA_HD u64 board_words(u64 count, u64 words) { return 3 * words + (words + 1) / 2 + (10 * count + 3 + 1) / 2 + 8; }

// Writes what changed to the device's copies; the threads of all blocks share the work.
inline ELIMINA_HD void update(const Call& c, u64 thread, u64 threads) {
  for (u64 i = thread; i < c.word_count; i += threads) c.rows[c.words[i].word] = c.words[i].value;
  for (u64 i = thread; i < c.bounds_count; i += threads) c.bounds[c.new_bounds[i].variable] = c.new_bounds[i].bounds;
  for (u64 i = thread; i < c.match_count; i += threads) c.match[c.matches[i].member] = c.matches[i].value;
  for (u64 i = thread; i < c.part_count; i += threads) c.parts[i] = c.host_parts[i];
  for (u64 i = thread; i < c.list_count; i += threads) c.lists[i] = c.host_lists[i];
  for (u64 i = thread; i < 2 * c.part_count + 1; i += threads) c.barriers[i] = 0;
}

// A member's row in the constraint's words.
struct Row {
  const u64* words;
  Bounds bounds;
  i32 first;

  ELIMINA_HD i32 from() const { return bounds.lo < first ? 0 : (bounds.lo - first) >> 6; }
  ELIMINA_HD i32 to() const { return ((bounds.hi - first) >> 6) + 1; }
  ELIMINA_HD u64 own(i32 i) const {
    if (i < bounds.lo >> 6 || i > bounds.hi >> 6) return 0;
    u64 word = words[i];
    if (i == bounds.lo >> 6) word &= ~u64(0) << (bounds.lo & 63);
    if (i == bounds.hi >> 6) word &= ~u64(0) >> (63 - (bounds.hi & 63));
    return word;
  }
  ELIMINA_HD u64 word(i32 w) const {
    const i32 bit = first + 64 * w, shift = bit & 63;
    return shift ? own(bit >> 6) >> shift | own((bit >> 6) + 1) << (64 - shift) : own(bit >> 6);
  }
};

// `Team`: `thread`, `threads`, `sync`; groups of lanes that share a variable: `group`, `groups`, `lane`, `lanes`, and `any`,
// which all lanes of a group call; `load`, `unite`, `intersect`, `raise`, `take` for memory that other threads write; `publish`
// before what a thread wrote is for the host.
template <class Team>
class Division {
 public:
  ELIMINA_HD Division(Team& team, const Call& call, const Part& part, u64* board, u64* rows)
      : team_(team), call_(call), part_(part), count_(i32(part.count)), words_(i32(part.words)), rows_(rows) {
    core_ = board;
    backward_ = core_ + words_;
    forward_ = backward_ + words_;
    lost_words_ = reinterpret_cast<u32*>(forward_ + words_);
    i32* next = reinterpret_cast<i32*>(forward_ + words_ + (words_ + 1) / 2);
    const auto take = [&](i32 size) {
      i32* const at = next;
      next += size;
      return at;
    };
    counters_ = reinterpret_cast<u32*>(take(16));
    member_ = take(count_);
    match_ = take(count_);
    state_ = take(count_);
    colour_ = take(count_);
    lists_[0] = take(count_);
    lists_[1] = take(count_);
    lists_[2] = take(count_);
    pivot_ = take(3 * count_ + 3);
  }

  ELIMINA_HD void run(Answer* answer) {
    begin();
    const i32 left = gather();
    bool is_complete = has_rounds();
    if (left > 0 && is_complete) {
      list_remaining();
      if (left < count_) take_from_core();
      is_complete = divide(left);
    }
    team_.publish();
    team_.sync();
    if (team_.thread() == 0) *answer = {team_.load(counters_ + kLosses), team_.load(counters_ + kLabels), is_complete};
  }

 private:
  enum Counter { kLosses = 3, kLabels, kRemaining, kLostWords, kNext };  // the first three: of rounds
  static constexpr i32 kOpen = 0, kCore = 1, kExpanded = 2;

  static ELIMINA_HD u64 bit(i32 value) { return u64(1) << (value & 63); }
  ELIMINA_HD bool has(const u64* mask, i32 value) const { return team_.load(mask + (value >> 6)) >> (value & 63) & 1; }
  ELIMINA_HD Row row(i32 k) const {
    const Member m = call_.members[part_.members + member(k)];
    return {call_.rows + m.row, call_.bounds[m.variable], m.first};
  }
  ELIMINA_HD u32 member(i32 k) const { return u32(team_.load(member_ + k)); }
  ELIMINA_HD u64* remaining_row(i32 j) const { return rows_ + u64(j) * u64(words_); }

  ELIMINA_HD void begin() {
    for (i32 w = team_.thread(); w < words_; w += team_.threads()) core_[w] = ~u64(0);
    for (i32 i = team_.thread(); i < 16; i += team_.threads()) counters_[i] = 0;
    for (i32 k = team_.thread(); k < count_; k += team_.threads()) {
      const i32 i = part_.list < 0 ? k : i32(call_.lists[part_.list + k]);
      member_[k] = i;
      match_[k] = call_.match[part_.members + u32(i)];
      state_[k] = kOpen;
    }
    team_.sync();
    for (i32 k = team_.thread(); k < count_; k += team_.threads()) {
      const i32 value = team_.load(match_ + k);
      team_.intersect(core_ + (value >> 6), ~bit(value));
    }
    team_.sync();
  }

  // Counts of this round; those of the next one are cleared.
  ELIMINA_HD u32* counter() {
    if (team_.thread() == 0) counters_[(round_ + 1) % 3] = 0;
    return counters_ + round_ % 3;
  }

  // Variables that lead to free values; how many do not.
  ELIMINA_HD i32 gather() {
    for (i32 left = count_;; ++round_) {
      u32* const joined = counter();
      for (i32 k = team_.group(); k < count_; k += team_.groups()) {
        if (team_.any(team_.load(state_ + k) != kOpen) || !meets_core(k)) continue;
        if (team_.lane() != 0) continue;
        const i32 value = team_.load(match_ + k);
        state_[k] = kCore;
        team_.unite(core_ + (value >> 6), bit(value));
        team_.take(joined);
      }
      team_.sync();
      const i32 found = i32(team_.load(joined));
      left -= found;
      if (found == 0 || left == 0 || !has_rounds()) {
        ++round_;
        return left;
      }
    }
  }

  // A chain of variables may take as many rounds as it is long: a search from one to the next is better then.
  ELIMINA_HD bool has_rounds() const { return round_ < call_.rounds; }

  ELIMINA_HD bool meets_core(i32 k) const {
    const Row r = row(k);
    const i32 to = r.to();
    for (i32 from = r.from(); from < to; from += team_.lanes()) {
      const i32 w = from + team_.lane();
      if (team_.any(w < to && (team_.load(core_ + w) & r.word(w)))) return true;
    }
    return false;
  }

  ELIMINA_HD void list_remaining() {
    for (i32 k = team_.thread(); k < count_; k += team_.threads())
      if (team_.load(state_ + k) == kOpen) lists_[2][team_.take(counters_ + kRemaining)] = k;
    for (i32 w = team_.thread(); w < words_; w += team_.threads())
      if (~team_.load(core_ + w)) lost_words_[team_.take(counters_ + kLostWords)] = u32(w);
    team_.sync();
  }

  // The core keeps all but the values of what remains.
  ELIMINA_HD void take_from_core() {
    const u64 lost = team_.load(counters_ + kLostWords);
    for (u64 i = u64(team_.thread()); i < lost * u64(count_); i += u64(team_.threads())) {
      const i32 k = i32(i / lost);
      if (team_.load(state_ + k) != kCore) continue;
      const u32 w = team_.load(lost_words_ + i % lost);
      lose(k, i32(w), row(k).word(i32(w)) & ~team_.load(core_ + w));
    }
  }

  ELIMINA_HD void lose(i32 k, i32 w, u64 values) {
    if (!values) return;
    const u32 at = team_.take(counters_ + kLosses);
    if (at < part_.losses) call_.losses[part_.first_loss + at] = {member(k), u32(w), values};
  }

  ELIMINA_HD void label(i32 j, i32 component) {
    const i32 k = team_.load(lists_[2] + j);
    call_.labels[part_.first_label + team_.take(counters_ + kLabels)] = {member(k), component};
  }

  // The rest, numbered from 0 on by `lists_[2]`; false: it takes too many rounds.
  ELIMINA_HD bool divide(i32 left) {
    copy_rows(left);
    for (i32 turn = 0;; turn ^= 1) {
      team_.sync();
      const i32 alive = i32(team_.load(counters_ + kNext + turn));
      if (alive == 0) return true;
      choose_pivots(lists_[turn], alive);
      if (team_.thread() == 0) counters_[kNext + (turn ^ 1)] = 0;
      if (!reach(lists_[turn], alive)) return false;
      classify(lists_[turn], alive, turn ^ 1);
    }
  }

  // Without their own values; what has no others is a component.
  ELIMINA_HD void copy_rows(i32 left) {
    for (i32 j = team_.group(); j < left; j += team_.groups()) {
      const i32 k = team_.load(lists_[2] + j), value = team_.load(match_ + k);
      const Row r = row(k);
      bool some = false;
      for (i32 w = team_.lane(); w < words_; w += team_.lanes()) {
        const u64 word = r.word(w) & ~(w == value >> 6 ? bit(value) : 0);
        remaining_row(j)[w] = word;
        some |= word != 0;
      }
      keep(j, team_.any(some), 0, 0);
    }
  }

  // A member with other values goes on in a colour; one without is done.
  ELIMINA_HD void keep(i32 j, bool some, i32 colour, i32 turn) {
    if (team_.lane() != 0) return;
    if (!some) {
      label(j, j);
      return;
    }
    colour_[j] = colour;
    lists_[turn][team_.take(counters_ + kNext + turn)] = j;
  }

  ELIMINA_HD void choose_pivots(const i32* list, i32 alive) {
    for (i32 w = team_.thread(); w < words_; w += team_.threads()) backward_[w] = forward_[w] = 0;
    for (i32 i = team_.thread(); i < alive; i += team_.threads()) pivot_[team_.load(colour_ + team_.load(list + i))] = -1;
    team_.sync();
    for (i32 i = team_.thread(); i < alive; i += team_.threads()) {
      const i32 j = team_.load(list + i);
      team_.raise(pivot_ + team_.load(colour_ + j), j);
    }
    team_.sync();
    for (i32 i = team_.thread(); i < alive; i += team_.threads()) {
      const i32 j = team_.load(list + i), k = team_.load(lists_[2] + j), value = team_.load(match_ + k);
      state_[k] = kOpen;
      if (team_.load(pivot_ + team_.load(colour_ + j)) != j) continue;
      team_.unite(backward_ + (value >> 6), bit(value));
      team_.unite(forward_ + (value >> 6), bit(value));
    }
    team_.sync();
  }

  // What leads to the pivots, and what they lead to.
  ELIMINA_HD bool reach(const i32* list, i32 alive) {
    while (has_rounds()) {
      u32* const found = counter();
      for (i32 i = team_.group(); i < alive; i += team_.groups()) {
        const i32 j = team_.load(list + i), k = team_.load(lists_[2] + j), value = team_.load(match_ + k);
        bool changed = false;
        if (!team_.any(has(backward_, value)) && meets(j)) {
          if (team_.lane() == 0) team_.unite(backward_ + (value >> 6), bit(value));
          changed = true;
        }
        if (team_.any(team_.load(state_ + k) == kOpen && has(forward_, value))) {
          expand(j);
          if (team_.lane() == 0) state_[k] = kExpanded;
          changed = true;
        }
        if (changed && team_.lane() == 0) team_.take(found);
      }
      team_.sync();
      const bool ends = team_.load(found) == 0;
      ++round_;
      if (ends) return true;
    }
    return false;
  }

  ELIMINA_HD bool meets(i32 j) const {
    const u64* const words = remaining_row(j);
    for (i32 from = 0; from < words_; from += team_.lanes()) {
      const i32 w = from + team_.lane();
      if (team_.any(w < words_ && (team_.load(words + w) & team_.load(backward_ + w)))) return true;
    }
    return false;
  }

  ELIMINA_HD void expand(i32 j) {
    const u64* const words = remaining_row(j);
    for (i32 w = team_.lane(); w < words_; w += team_.lanes())
      if (const u64 word = team_.load(words + w); word & ~team_.load(forward_ + w)) team_.unite(forward_ + w, word);
  }

  // Components are done; the others' rows keep what is of their own kind.
  ELIMINA_HD void classify(const i32* list, i32 alive, i32 turn) {
    for (i32 i = team_.group(); i < alive; i += team_.groups()) {
      const i32 j = team_.load(list + i), k = team_.load(lists_[2] + j), value = team_.load(match_ + k);
      const bool back = team_.any(has(backward_, value)), fore = team_.any(has(forward_, value));
      const i32 pivot = team_.load(pivot_ + team_.load(colour_ + j));
      u64* const words = remaining_row(j);
      bool some = false;
      for (i32 w = team_.lane(); w < words_; w += team_.lanes()) {
        const u64 b = team_.load(backward_ + w), f = team_.load(forward_ + w);
        const u64 word = team_.load(words + w) & (back ? b : ~b) & (fore ? f : ~f);
        words[w] = word;
        some |= word != 0;
      }
      some = team_.any(some);
      const bool is_component = back && fore;
      if (is_component || !some) shrink(k, words);
      if (!is_component) keep(j, some, 3 * pivot + (back ? 0 : fore ? 1 : 2), turn);
      else if (team_.lane() == 0) label(j, pivot);
    }
  }

  // A member of a complete component keeps its own value and what its row here has.
  ELIMINA_HD void shrink(i32 k, const u64* words) {
    const i32 value = team_.load(match_ + k);
    const Row r = row(k);
    for (i32 w = team_.lane(); w < words_; w += team_.lanes())
      lose(k, w, r.word(w) & ~(words[w] | (w == value >> 6 ? bit(value) : 0)));
  }

  Team& team_;
  const Call& call_;
  const Part& part_;
  const i32 count_, words_;
  u64 *core_, *backward_, *forward_, *rows_;
  u32 *lost_words_, *counters_;
  i32 *member_, *match_, *state_, *colour_, *lists_[3], *pivot_;
  u32 round_ = 0;
};

}  // namespace elimina::different
