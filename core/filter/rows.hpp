// Sparse tables: packed keys and costs; joins that drop a row as soon as a bound shows that it is useless.
#pragma once
#include <cstdint>
#include <functional>

#include "tables.hpp"

namespace elimina::filter::ELIMINA_ISA {

struct Rows {
  Scope scope;
  std::vector<Key> key;  // over the scope's fields, or over a cluster's while it is being made
  std::vector<Value> cost;
  std::vector<Value> total;  // cost and bound, while the rows are being made
  std::size_t count() const { return key.size(); }
  void add(Key k, Value c, Value t) {
    key.push_back(k);
    cost.push_back(c);
    total.push_back(t);
  }
};

// A dense table that is read at some bits of a key.
struct Term {
  Key mask;
  const Value* value;
};

struct Stage {
  static constexpr std::uint64_t kAsk = 1 << 18;  // candidates, after which it asks whether to go on
  std::vector<Term> exact;  // added to a row's cost
  std::vector<Term> bound;  // only to decide whether the row is kept
  Value budget;
  std::uint64_t most_made;  // the stage stops after so many candidates,
  std::size_t most_stored;  // or rows
  const std::function<bool()>& goes_on;
  std::uint64_t made = 0, asked = 0;
  bool stopped = false;

  bool is_over(const Rows& out) {
    if (made - asked > kAsk) {
      asked = made;
      stopped = !goes_on();
    }
    return stopped || made > most_made || out.count() > most_stored;
  }

  bool admits(Key key, Value& cost, Value& total) {
    ++made;
    for (const Term& t : exact) cost = clamp(cost + t.value[extract(key, t.mask)]);
    if (cost > budget) return false;
    total = cost;
    for (const Term& t : bound) {
      total = clamp(total + t.value[extract(key, t.mask)]);
      if (total > budget) return false;
    }
    return true;
  }
};

// Rows of a table by the value of some bits of their keys.
class Groups {
 public:
  Groups(const std::vector<Key>& keys, Key mask);
  std::pair<const std::uint32_t*, const std::uint32_t*> find(Key key) const;

 private:
  Key mask_;
  bool direct_;
  std::vector<std::uint32_t> row_, start_, slot_;
  std::vector<Key> name_;
  Key wrap_ = 0;
};

// Stops being exact: keeps at most so many rows, those of the least totals; returns the least total that was dropped.
Value cut_rows(Rows& rows, std::size_t most);

// Both tables' keys are over the same cluster, zero outside their scopes.
Rows join_rows(const Rows& left, const Rows& right, Key shared, Stage& stage);
Rows extend_rows(const Rows& rows, Var v, int size, int shift, Stage& stage);

// Sorts by key.
void sort_rows(Rows& rows, int bits);
// Least cost over the `bits` lowest bits, which leave the key; sorted by key. The scope is kept.
Rows least_rows(const Rows& rows, int bits, int all_bits);

}  // namespace elimina::filter::ELIMINA_ISA
