// The second step of AllDifferent, by a team of threads: finds the strongly connected components of the residual graph
// of a subset of variables, and with them the values to be removed. The same code serves kernels (a team is one block
// or several) and the host.
//
// The nodes are the variables; a matched value belongs to its variable's node. Variables that lead to free values are
// the core. The other nodes begin as one set, and sets (colours) are divided in rounds. In each round, the pivot of a
// set divides it into four: nodes that lead to the pivot and from it (a component), only to it, only from it, and
// neither. Edges between colours are removed from the rows, so that one mask of values serves all colours (Fleischer,
// Hendrickson and Pinar, 'On identifying strongly connected components in parallel', 2000; trimming: McLendon et al.,
// 2005).
#pragma once
#include "config.hpp"

namespace elimina::different {

// A variable in a constraint: its number, the first word of its row, and the row's bit for the constraint's first value.
struct Member {
  u32 variable, row;
  i32 first;
};

// First and last valid bit of a row; bits beyond are undefined.
struct Bounds {
  i32 lo, hi;
};

// The members of one constraint that are to be divided into components. The constraint's members begin at `members`; the
// subset has all of them, or those that are listed from `list` on.
struct Subset {
  u32 members, count, words;
  i32 list;
  u32 free, has_free;      // start of the mask of values without a member; 1 if there is such a value
  u64 board, rows;         // starts of its state and of its rows in the scratch memory, in words of 64 bits
  u32 first_loss, losses;  // first entry for the subset's losses, and number of entries
  u32 first_label;
};

// Values that a member loses in one word of the constraint's rows, as bits.
struct Loss {
  u32 member, word;
  u64 values;
};

// The component of a member, if it is not the core: all members of a component have the same label.
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

// Arguments of a call. A device reads the host's arrays only once, to copy them to its own memory.
struct Call {
  u64* rows;
  Bounds* bounds;
  i32* match;
  const Member* members;
  const WordChange* words;
  const BoundsChange* new_bounds;
  const MatchChange* matches;
  const Subset* host_subsets;
  const u32* host_lists;
  const u64* host_free;
  u32 word_count, bounds_count, match_count, subset_count, list_count, free_count;
  Subset* subsets;
  u32* lists;
  u64* free;
  u64* scratch;
  Loss* losses;
  Label* labels;
  Answer* answers;
  u32* barriers;  // one for each subset
  u32* arrived;   // number of finished stages of blocks and subsets, in all calls so far
  u32* done;      // in the host's memory; becomes `ticket` when the call has finished
  // `blocks`: number of blocks of a subset's team; `rounds`: largest number of rounds; `arrivals`: value of
  // `arrived` before the call.
  u32 ticket, blocks, rounds, arrivals;
};

constexpr i32 kCounters = 16;

// Returns the size of a subset's state without its rows, in words of 64 bits. The state has four masks, a pivot,
// and the following numbers of 32 bits: counters, a list of words, and ten numbers for each member.
inline ELIMINA_HD u64 board_words(u64 count, u64 words) {
  return 4 * words + 1 + (kCounters + words + 10 * count + 1) / 2;
}

// Writes changes to the device's copies; the threads of all blocks share the work. Reading the host's memory is slow,
// so different threads read the different kinds of changes at the same time.
class Update {
 public:
  ELIMINA_HD Update(const Call& call, u64 thread, u64 threads) : call_(call), thread_(thread), threads_(threads) {}

  ELIMINA_HD void run() {
    const Call& c = call_;
    each(c.subset_count, [&](u64 i) { c.subsets[i] = c.host_subsets[i]; });
    each(c.subset_count, [&](u64 i) { c.barriers[i] = 0; });
    each(c.free_count, [&](u64 i) { c.free[i] = c.host_free[i]; });
    each(c.list_count, [&](u64 i) { c.lists[i] = c.host_lists[i]; });
    each(c.match_count, [&](u64 i) { c.match[c.matches[i].member] = c.matches[i].value; });
    each(c.bounds_count, [&](u64 i) { c.bounds[c.new_bounds[i].variable] = c.new_bounds[i].bounds; });
    each(c.word_count, [&](u64 i) { c.rows[c.words[i].word] = c.words[i].value; });
  }

 private:
  template <class F>
  ELIMINA_HD void each(u64 count, F write) {
    for (u64 i = (thread_ + threads_ - before_ % threads_) % threads_; i < count; i += threads_) write(i);
    before_ += (count + 31) / 32 * 32;
  }

  const Call& call_;
  const u64 thread_, threads_;
  u64 before_ = 0;
};

// A member's row in the constraint's words.
struct Row {
  const u64* words;
  Bounds bounds;
  i32 first;

  ELIMINA_HD i32 from() const { return bounds.lo < first ? 0 : (bounds.lo - first) >> 6; }
  ELIMINA_HD i32 to() const { return ((bounds.hi - first) >> 6) + 1; }
  ELIMINA_HD u64 domain_word(i32 i) const {
    if (i < bounds.lo >> 6 || i > bounds.hi >> 6) return 0;
    u64 word = words[i];
    if (i == bounds.lo >> 6) word &= ~u64(0) << (bounds.lo & 63);
    if (i == bounds.hi >> 6) word &= ~u64(0) >> (63 - (bounds.hi & 63));
    return word;
  }
  ELIMINA_HD u64 word(i32 w) const {
    const i32 bit = first + 64 * w, shift = bit & 63;
    return shift ? domain_word(bit >> 6) >> shift | domain_word((bit >> 6) + 1) << (64 - shift) : domain_word(bit >> 6);
  }
};

// `Team` has `thread`, `threads` and `sync`. For groups of lanes that share a variable, it has `group`, `groups`,
// `lane`, `lanes`, and `any`, which all lanes of a group call. It accesses memory that other threads write by `load`,
// `unite`, `raise`, `add` and `next_index`. A thread calls `publish` before the host may read what the thread wrote.
template <class Team>
class Division {
 public:
  ELIMINA_HD Division(Team& team, const Call& call, const Subset& subset, u64* board, u64* rows)
      : team_(team), call_(call), subset_(subset), count_(i32(subset.count)), words_(i32(subset.words)), rows_(rows) {
    core_ = board;
    lost_ = core_ + words_;
    backward_ = lost_ + words_;
    forward_ = backward_ + words_;
    first_pivot_ = forward_ + words_;
    i32* next = reinterpret_cast<i32*>(first_pivot_ + 1);
    const auto reserve = [&](i32 size) {
      i32* const at = next;
      next += size;
      return at;
    };
    counters_ = reinterpret_cast<u32*>(reserve(kCounters));
    lost_words_ = reinterpret_cast<u32*>(reserve(words_));
    member_ = reserve(count_);
    match_ = reserve(count_);
    state_ = reserve(count_);
    colour_ = reserve(count_);
    remaining_ = reserve(count_);
    lists_[0] = reserve(count_);
    lists_[1] = reserve(count_);
    pivot_ = reserve(3 * count_);
  }

  ELIMINA_HD void run(Answer* answer) {
    begin();
    const i32 undecided = subset_.has_free ? gather() : count_;
    bool is_complete = has_rounds();
    if (undecided > 0 && is_complete) {
      const bool has_core = undecided < count_;
      const i32 alive = list_remaining(has_core);
      is_complete = alive == 0 || divide(alive, has_core);
      if (has_core || alive == 0 || is_whole_) take_lost(has_core);
    }
    team_.publish();
    team_.sync();
    if (team_.thread() == 0) *answer = {team_.load(counters_ + kLosses), team_.load(counters_ + kLabels), is_complete};
  }

 private:
  enum Counter { kRounds = 6, kLosses = kRounds, kLabels, kRemaining, kLostWords, kNext };
  static constexpr i32 kOpen = 0, kCore = 1, kExpanded = 2, kFixed = 3;

  static ELIMINA_HD u64 bit(i32 value) { return u64(1) << (value & 63); }
  ELIMINA_HD bool has(const u64* mask, i32 value) const { return team_.load(mask + (value >> 6)) >> (value & 63) & 1; }
  ELIMINA_HD u64 set(u64* mask, i32 value) const { return team_.unite(mask + (value >> 6), bit(value)); }
  ELIMINA_HD i32 match(i32 k) const { return team_.load(match_ + k); }
  ELIMINA_HD u32 member(i32 k) const { return u32(team_.load(member_ + k)); }
  ELIMINA_HD i32 remaining(i32 j) const { return team_.load(remaining_ + j); }
  ELIMINA_HD Row row(i32 k) const {
    const Member m = call_.members[subset_.members + member(k)];
    return {call_.rows + m.row, call_.bounds[m.variable], m.first};
  }
  ELIMINA_HD u64* kept_row(i32 j) const { return rows_ + u64(j) * u64(words_); }

  ELIMINA_HD void begin() {
    for (i32 w = team_.thread(); w < words_; w += team_.threads()) {
      core_[w] = call_.free[subset_.free + u32(w)];
      lost_[w] = backward_[w] = forward_[w] = 0;
    }
    for (i32 i = team_.thread(); i < kCounters; i += team_.threads()) counters_[i] = 0;
    if (team_.thread() == 0) *first_pivot_ = 0;
    for (i32 k = team_.thread(); k < count_; k += team_.threads()) {
      const i32 i = subset_.list < 0 ? k : i32(call_.lists[subset_.list + k]);
      member_[k] = i;
      match_[k] = call_.match[subset_.members + u32(i)];
      state_[k] = kOpen;
    }
    team_.sync();
  }

  // Returns the two counters of this round, and clears those of the next round. Three pairs are needed, because threads
  // may enter the next round before others have read this round's counters.
  ELIMINA_HD u32* counter() {
    const u32 next = 2 * ((round_ + 1) % 3);
    if (team_.thread() == 0) counters_[next] = counters_[next + 1] = 0;
    return counters_ + 2 * (round_ % 3);
  }

  // True while rounds remain. A chain of variables may take as many rounds as it has variables. A sequential search is
  // better for it.
  ELIMINA_HD bool has_rounds() const { return round_ < call_.rounds; }

  // Gathers variables that lead to free values; returns the number of the others.
  ELIMINA_HD i32 gather() {
    for (i32 undecided = count_;;) {
      u32* const joined = counter();
      u32 gathered_here = 0;
      for (i32 k = team_.group(); k < count_; k += team_.groups()) {
        if (team_.any(team_.load(state_ + k) != kOpen) || !meets(row(k), core_) || team_.lane() != 0) continue;
        state_[k] = kCore;
        set(core_, match(k));
        ++gathered_here;
      }
      if (gathered_here) team_.add(joined, gathered_here);
      team_.sync();
      ++round_;
      const i32 gathered = i32(team_.load(joined));
      undecided -= gathered;
      if (gathered == 0 || undecided == 0 || !has_rounds()) return undecided;
    }
  }

  ELIMINA_HD bool meets(const Row& r, const u64* mask) const {
    const i32 to = r.to();
    for (i32 from = r.from(); from < to; from += team_.lanes()) {
      const i32 w = from + team_.lane();
      if (team_.any(w < to && (team_.load(mask + w) & r.word(w)))) return true;
    }
    return false;
  }

  // Numbers the variables outside the core; each fixed one is a component. Lists the values that take_lost removes: those
  // of all variables outside the core if there is a core, otherwise those of fixed variables. Returns the number of
  // variables outside the core that are not fixed.
  ELIMINA_HD i32 list_remaining(bool has_core) {
    for (i32 k = team_.thread(); k < count_; k += team_.threads()) {
      if (team_.load(state_ + k) != kOpen) continue;
      const i32 value = match(k);
      const Bounds bounds = row(k).bounds;
      const bool is_fixed = bounds.lo == bounds.hi;
      if ((is_fixed || has_core) && set(lost_, value) == 0)
        lost_words_[team_.next_index(counters_ + kLostWords)] = u32(value >> 6);
      if (is_fixed) {
        state_[k] = kFixed;
        label(k, k);
        continue;
      }
      const i32 j = i32(team_.next_index(counters_ + kRemaining));
      remaining_[j] = k;
      team_.raise(first_pivot_, u64(bounds.hi - bounds.lo) << 32 | u64(j));
    }
    team_.sync();
    return i32(team_.load(counters_ + kRemaining));
  }

  // Removes the values of other components from the core, or from all variables that are not fixed.
  ELIMINA_HD void take_lost(bool has_core) {
    const u64 lost = team_.load(counters_ + kLostWords);
    for (u64 i = u64(team_.thread()); i < lost * u64(count_); i += u64(team_.threads())) {
      const i32 k = i32(i / lost), state = team_.load(state_ + k);
      if (has_core ? state != kCore : state == kFixed) continue;
      const i32 w = i32(team_.load(lost_words_ + i % lost));
      lose(k, w, row(k).word(w) & team_.load(lost_ + w));
    }
  }

  ELIMINA_HD void lose(i32 k, i32 w, u64 values) {
    if (!values) return;
    const u32 at = team_.next_index(counters_ + kLosses);
    if (at < subset_.losses) call_.losses[subset_.first_loss + at] = {member(k), u32(w), values};
  }

  ELIMINA_HD void label(i32 k, i32 component) {
    call_.labels[subset_.first_label + team_.next_index(counters_ + kLabels)] = {member(k), component};
  }

  // Divides the remaining variables into components. The first pivot is the variable with the widest domain; its search reads
  // the domains in place of rows. Returns false if this takes too many rounds.
  ELIMINA_HD bool divide(i32 alive, bool has_core) {
    const i32 pivot = i32(team_.load(first_pivot_) & ~0u), value = match(remaining(pivot));
    if (team_.thread() == 0) {
      set(backward_, value);
      set(forward_, value);
    }
    if (!reach(nullptr, alive, pivot)) return false;
    if (!has_core && is_whole_) return true;
    classify(nullptr, alive, pivot, 0);
    for (i32 turn = 0;; turn ^= 1) {
      team_.sync();
      alive = i32(team_.load(counters_ + kNext + turn));
      if (alive == 0) return true;
      choose_pivots(lists_[turn], alive);
      if (team_.thread() == 0) counters_[kNext + (turn ^ 1)] = 0;
      if (!reach(lists_[turn], alive, -1)) return false;
      classify(lists_[turn], alive, -1, turn ^ 1);
    }
  }

  ELIMINA_HD void choose_pivots(const i32* list, i32 alive) {
    for (i32 w = team_.thread(); w < words_; w += team_.threads()) backward_[w] = forward_[w] = 0;
    for (i32 i = team_.thread(); i < alive; i += team_.threads())
      pivot_[team_.load(colour_ + team_.load(list + i))] = -1;
    team_.sync();
    for (i32 i = team_.thread(); i < alive; i += team_.threads()) {
      const i32 j = team_.load(list + i);
      team_.raise(pivot_ + team_.load(colour_ + j), j);
    }
    team_.sync();
    for (i32 i = team_.thread(); i < alive; i += team_.threads()) {
      const i32 j = team_.load(list + i), k = remaining(j);
      state_[k] = kOpen;
      if (team_.load(pivot_ + team_.load(colour_ + j)) != j) continue;
      set(backward_, match(k));
      set(forward_, match(k));
    }
    team_.sync();
  }

  // Finds the nodes with a path to a pivot, and the nodes with a path from a pivot. `pivot`: a single pivot; -1 if each
  // colour has a pivot. With a single pivot, the rows are the domains, and the search ends once both sets have all
  // nodes. Returns false if this takes too many rounds.
  ELIMINA_HD bool reach(const i32* list, i32 alive, i32 pivot) {
    for (i32 back = 1, fore = 0; has_rounds();) {
      u32* const counts = counter();
      u32 joining = 0, expanding = 0;
      for (i32 i = team_.group(); i < alive; i += team_.groups()) {
        const i32 j = list ? team_.load(list + i) : i, k = remaining(j), value = match(k);
        const bool joins =
            j != pivot && !team_.any(has(backward_, value)) && (pivot < 0 ? meets(j) : meets(row(k), backward_));
        const bool expands = team_.any(team_.load(state_ + k) == kOpen && (j == pivot || has(forward_, value)));
        if (expands && pivot < 0) expand(j);
        if (expands && pivot >= 0) expand(row(k));
        if (team_.lane() != 0) continue;
        if (joins) {
          set(backward_, value);
          ++joining;
        }
        if (expands) {
          state_[k] = kExpanded;
          ++expanding;
        }
      }
      if (joining) team_.add(counts, joining);
      if (expanding) team_.add(counts + 1, expanding);
      team_.sync();
      ++round_;
      const i32 joined = i32(team_.load(counts)), expanded = i32(team_.load(counts + 1));
      back += joined;
      fore += expanded;
      is_whole_ = pivot >= 0 && back == alive && fore == alive;
      if (is_whole_ || joined + expanded == 0) return true;
    }
    return false;
  }

  ELIMINA_HD bool meets(i32 j) const {
    const u64* const words = kept_row(j);
    for (i32 from = 0; from < words_; from += team_.lanes()) {
      const i32 w = from + team_.lane();
      if (team_.any(w < words_ && (team_.load(words + w) & team_.load(backward_ + w)))) return true;
    }
    return false;
  }

  ELIMINA_HD void expand(i32 j) {
    for (i32 w = team_.lane(); w < words_; w += team_.lanes()) expand(w, team_.load(kept_row(j) + w));
  }
  ELIMINA_HD void expand(const Row& r) {
    for (i32 w = r.from() + team_.lane(); w < r.to(); w += team_.lanes()) expand(w, r.word(w));
  }
  ELIMINA_HD void expand(i32 w, u64 word) {
    if (word & ~team_.load(forward_ + w)) team_.unite(forward_ + w, word);
  }

  // Finishes the complete components. Any other node keeps only values of its own set in its row, and its set is
  // divided further if such values remain.
  ELIMINA_HD void classify(const i32* list, i32 alive, i32 first_pivot, i32 turn) {
    for (i32 i = team_.group(); i < alive; i += team_.groups()) {
      const i32 j = list ? team_.load(list + i) : i, k = remaining(j), value = match(k);
      const bool back = team_.any(has(backward_, value)), fore = team_.any(has(forward_, value));
      const i32 pivot = first_pivot < 0 ? team_.load(pivot_ + team_.load(colour_ + j)) : first_pivot;
      const Row r = row(k);
      u64* const words = kept_row(j);
      bool some = false;
      for (i32 w = team_.lane(); w < words_; w += team_.lanes()) {
        const u64 b = team_.load(backward_ + w), f = team_.load(forward_ + w),
                  own_bit = w == value >> 6 ? bit(value) : 0;
        const u64 word =
            (first_pivot < 0 ? team_.load(words + w) : r.word(w) & ~own_bit) & (back ? b : ~b) & (fore ? f : ~f);
        words[w] = word;
        some |= word != 0;
      }
      some = team_.any(some);
      if ((back && fore) || !some) finish(k, r, words, back && fore ? remaining(pivot) : k);
      else go_on(j, 3 * pivot + (back ? 0 : fore ? 1 : 2), turn);
    }
  }

  // Finishes a member of a complete component: it keeps only its own value and the values in `words`.
  ELIMINA_HD void finish(i32 k, const Row& r, const u64* words, i32 component) {
    const i32 value = match(k);
    if (team_.lane() == 0) label(k, component);
    for (i32 w = team_.lane(); w < words_; w += team_.lanes())
      lose(k, w, r.word(w) & ~(words[w] | (w == value >> 6 ? bit(value) : 0)));
  }

  ELIMINA_HD void go_on(i32 j, i32 colour, i32 turn) {
    if (team_.lane() != 0) return;
    colour_[j] = colour;
    lists_[turn][team_.next_index(counters_ + kNext + turn)] = j;
  }

  Team& team_;
  const Call& call_;
  const Subset& subset_;
  const i32 count_, words_;
  u64 *core_, *lost_, *backward_, *forward_, *first_pivot_, *rows_;
  u32 *lost_words_, *counters_;
  i32 *member_, *match_, *state_, *colour_, *remaining_, *lists_[2], *pivot_;
  u32 round_ = 0;
  bool is_whole_ = false;
};

}  // namespace elimina::different
