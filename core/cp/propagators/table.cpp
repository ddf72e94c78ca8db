// Compact-table (Demeulenaere and others, CP 2016): possible tuples as bits, in a reversible sparse set of words. A
// cell may be a star, which stands for all values (Verhaeghe, Lecoutre and Schaus, AAAI 2017).
#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <string>

#include "cp/constraint_call.hpp"

namespace elimina::cp {

namespace {

constexpr std::size_t kMostWords = std::size_t{1} << 28;

class Table final : public Propagator {
 public:
  // `stars`: 1 for each cell that is a star, else 0; if empty, no cell is a star.
  Table(Views xs, const Values& rows, const Values& stars) : Propagator(Priority::quadratic), xs_(std::move(xs)) {
    count_ = rows.size() / xs_.size();
    words_ = (count_ + 63) / 64;
    for (std::size_t i = 0; i < xs_.size(); ++i) index(i, rows, stars);
    order_.resize(words_);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    mask_.resize(words_);
    repeats_ = repeats(xs_);
  }

  void attach(Engine& engine) override {
    possible_ = engine.trail().make(words_, ~std::uint64_t{0});
    if (count_ % 64) engine.trail().set(possible_ + words_ - 1, ~std::uint64_t{0} >> (64 - count_ % 64));
    limit_ = engine.trail().make(1, words_);
    for (std::size_t i = 0; i < xs_.size(); ++i) engine.subscribe(*this, xs_[i], kDomain, static_cast<int>(i));
  }

  Outcome propagate(Engine& engine) override {
    for (const int i : touched)
      if (!update(engine, static_cast<std::size_t>(i))) return Outcome::failed;
    for (std::size_t i = 0; i < xs_.size(); ++i)
      if (!filter(engine, i)) return Outcome::failed;
    return repeats_ ? Outcome::again : Outcome::fixpoint;
  }

 private:
  // `values`: the values of a column, sorted. `rows`: for each value, its tuples as bits. `residue`: for each value,
  // the word of its latest support. `stars`: tuples with a star in the column, which support all values; empty if there
  // is none. `star_residue`: the word of the latest support among these.
  struct Column {
    Values values;
    std::vector<std::uint64_t> rows, stars;
    std::vector<std::size_t> residue;
    std::size_t star_residue = 0;
  };

  void index(std::size_t i, const Values& rows, const Values& stars) {
    Column c;
    const auto is_star = [&](std::size_t r) { return !stars.empty() && stars[r * xs_.size() + i] != 0; };
    for (std::size_t r = 0; r < count_; ++r) {
      if (!is_star(r)) c.values.push_back(rows[r * xs_.size() + i]);
      else if (c.stars.empty()) c.stars.resize(words_, 0);
    }
    std::sort(c.values.begin(), c.values.end());
    c.values.erase(std::unique(c.values.begin(), c.values.end()), c.values.end());
    if (used_ += c.values.size() * words_; used_ > kMostWords)
      throw Refused("table: " + std::to_string(count_) +
                    " rows with so many different values take more than 2 GiB: use fewer rows");
    c.rows.resize(c.values.size() * words_, 0);
    for (std::size_t r = 0; r < count_; ++r)
      (is_star(r) ? c.stars[r / 64] : c.rows[rank(c, rows[r * xs_.size() + i]) * words_ + r / 64]) |= std::uint64_t{1}
                                                                                                      << (r % 64);
    c.residue.resize(c.values.size(), 0);
    columns_.push_back(std::move(c));
  }

  // Returns the position of a value, or of the next larger one.
  static std::size_t rank(const Column& c, Value value) {
    if (!c.values.empty() && c.values.back() - c.values.front() + 1 == static_cast<Value>(c.values.size()))
      return value < c.values.front() ? 0
                                      : std::min(static_cast<std::size_t>(value - c.values.front()), c.values.size());
    return static_cast<std::size_t>(std::lower_bound(c.values.begin(), c.values.end(), value) - c.values.begin());
  }

  // Removes the tuples whose value of variable i is no longer in the domain.
  bool update(Engine& engine, std::size_t i) {
    const Domains& d = engine.domains();
    Trail& trail = engine.trail();
    const Column& c = columns_[i];
    std::size_t limit = trail.get(limit_);
    for (std::size_t k = 0; k < limit; ++k) mask_[order_[k]] = c.stars.empty() ? 0 : c.stars[order_[k]];
    const auto keep = [&](std::size_t value_rank) {
      const std::uint64_t* rows = c.rows.data() + value_rank * words_;
      for (std::size_t k = 0; k < limit; ++k) mask_[order_[k]] |= rows[order_[k]];
    };
    if (d.size(xs_[i]) > static_cast<Value>(c.values.size())) {
      for (std::size_t value_rank = 0; value_rank < c.values.size(); ++value_rank)
        if (d.has(xs_[i], c.values[value_rank])) keep(value_rank);
    } else {
      d.each(xs_[i], [&](Value value) {
        const std::size_t value_rank = rank(c, value);
        if (value_rank < c.values.size() && c.values[value_rank] == value) keep(value_rank);
      });
    }
    for (std::size_t k = limit; k-- > 0;) {
      const std::size_t w = order_[k];
      const std::uint64_t remaining = trail.get(possible_ + w) & mask_[w];
      trail.set(possible_ + w, remaining);
      if (!remaining) std::swap(order_[k], order_[--limit]);
    }
    trail.set(limit_, limit);
    return limit > 0;
  }

  // Removes values without support. If the domain is larger than the list of values, moves its bounds first. Values
  // inside a huge domain stay.
  bool filter(Engine& engine, std::size_t i) {
    Domains& d = engine.domains();
    const Values& values = columns_[i].values;
    Column& c = columns_[i];
    if (!c.stars.empty() && has_possible(engine.trail(), c.stars.data(), c.star_residue)) return true;
    const auto supported = [&](Value value) { return d.has(xs_[i], value) && is_supported(engine.trail(), c, value); };
    if (d.size(xs_[i]) > static_cast<Value>(values.size())) {
      const auto first = std::find_if(values.begin(), values.end(), supported);
      const auto last = std::find_if(values.rbegin(), values.rend(), supported);
      if (first == values.end() || !d.set_lo(xs_[i], *first) || !d.set_hi(xs_[i], *last)) return false;
      if (d.hi(xs_[i]) - d.lo(xs_[i]) > kListed) return true;
    }
    bool alive = true;
    d.each(xs_[i], [&](Value value) {
      if (alive && !is_supported(engine.trail(), c, value)) alive = d.remove(xs_[i], value);
    });
    return alive;
  }

  bool is_supported(const Trail& trail, Column& c, Value value) const {
    const std::size_t value_rank = rank(c, value);
    if (value_rank == c.values.size() || c.values[value_rank] != value) return false;
    return has_possible(trail, c.rows.data() + value_rank * words_, c.residue[value_rank]);
  }

  // True if one of the tuples of `rows` is possible. Tries the word of the latest possible tuple first.
  bool has_possible(const Trail& trail, const std::uint64_t* rows, std::size_t& residue) const {
    if (rows[residue] & trail.get(possible_ + residue)) return true;
    const std::size_t limit = trail.get(limit_);
    for (std::size_t k = 0; k < limit; ++k)
      if (rows[order_[k]] & trail.get(possible_ + order_[k])) {
        residue = order_[k];
        return true;
      }
    return false;
  }

  Views xs_;
  std::size_t count_ = 0, words_ = 0, used_ = 0;
  std::vector<Column> columns_;
  std::vector<std::size_t> order_;
  std::vector<std::uint64_t> mask_;
  std::size_t possible_ = 0, limit_ = 0;
  bool repeats_ = false;
};

}  // namespace

// Posts that the values of variables form a row of a table. Arguments: variables, and the rows one after the other.
void post_table(ConstraintCall& call) {
  if (call.length(0) == 0 || call.length(1) % call.length(0) != 0)
    call.refuse("each row has a value for each variable");
  call.engine().post(std::make_unique<Table>(call.views(0), call.values(1), Values{}));
}

// Posts that the values of variables form a row of a table with stars. Arguments: as for a table, and for each cell a 1
// if it is a star, else 0. The value of a cell that is a star is ignored.
void post_starred_table(ConstraintCall& call) {
  call.same_length(1, 2);
  if (call.length(0) == 0 || call.length(1) % call.length(0) != 0)
    call.refuse("each row has a value for each variable");
  call.engine().post(std::make_unique<Table>(call.views(0), call.values(1), call.values(2)));
}

}  // namespace elimina::cp
