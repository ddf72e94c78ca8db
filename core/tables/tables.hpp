// A model's tables as the core reads them: arrays of numbers with any strides, or tuples that differ from a default.
#pragma once
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "plan/lists.hpp"

namespace elimina::tables {

using plan::Lists;

enum class Type : std::uint8_t { f64, f32, i64 };
enum class Sense : std::uint8_t { min_cost, max_cost, probability };

// Integer cost of a forbidden assignment in a minimisation.
constexpr i64 kForbidden = std::numeric_limits<i64>::max();

// Returns the forbidden value in a table, by the sense of the model.
template <class T>
T forbidden(Sense sense) {
  if (sense == Sense::probability) return 0;
  if constexpr (std::is_integral_v<T>) return sense == Sense::min_cost ? kForbidden : -kForbidden;
  return sense == Sense::min_cost ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
}

// Largest number of axes of a dense array: NumPy 2 has no more, and 2^64 cells would not fit any memory.
constexpr int kMostAxes = 64;

// Smallest and largest allowed value of a table: `low` and `high` of floats, `least` and `largest` of integers.
struct Ends {
  bool any = false, forbids = false;  // true if the table allows some values, and if it forbids some
  bool has_nan = false;
  double low = 0, high = 0;
  i64 least = 0, largest = 0;
};

// Listed tuples of a sparse table, and the value of all other tuples.
struct Listing {
  const char* rows = nullptr;  // numbers of type int32
  i64 tuples = 0, value_step = 0, row_step = 0, column_step = 0;
  double real_default = 0;
  i64 integer_default = 0;
};

// Memory of the numbers of one table; its owner keeps it alive.
struct Source {
  Type type = Type::f64;
  const char* values = nullptr;
  std::shared_ptr<const Listing> listing;  // nullptr: a dense table
};

class Tables {
 public:
  void reserve(std::size_t tables);

  // Appends a table. `strides`: bytes between two states of each variable in a dense table; unused for a sparse one.
  void add(const Source& source, std::span<const int> scope, std::span<const i64> sizes, std::span<const i64> strides);

  // Replaces a table by another one with the same scope.
  void replace(i64 number, const Source& source, std::span<const i64> strides);

  i64 size() const { return i64(sources_.size()); }
  const Source& source(i64 number) const { return sources_[number]; }
  std::span<const int> scope(i64 number) const { return scopes_[number]; }
  std::span<const i64> sizes(i64 number) const { return of_scope(sizes_, number); }
  std::span<const i64> strides(i64 number) const { return of_scope(strides_, number); }
  i64 cells(i64 number) const { return cells_[number]; }

  // Smallest and largest allowed value of each table; computed again only for another sense.
  const std::vector<Ends>& ends(Sense sense) const;

  // Number of the first table with a variable outside the model, or with a size other than the model's; -1: none.
  i64 first_mismatch(std::span<const i64> sizes) const;

  // Numbers of the tables with NaN, with allowed values outside a range, or (sparse ones) with a default outside it.
  std::vector<i64> unusual(Sense sense, double low, double high) const;

  // Returns the axes with more than one state along which a table is constant; none for a sparse or a large table. Also
  // none if the table is constant along all axes: a model that is planned before its numbers are known has such tables,
  // which stand for their scopes.
  std::vector<int> idle(i64 number) const;

  // Address of a table's cell at an assignment of valid states; nullptr: the default value.
  const char* at(i64 number, std::span<const i64> assignment) const;

  // Returns groups of tables with nested scopes: each table with a scope goes to the smallest group whose scope
  // contains its variables.
  Lists groups() const;

 private:
  Ends ends_of(i64 number, Sense sense) const;
  std::span<const i64> of_scope(const std::vector<i64>& items, i64 number) const {
    return {items.data() + scopes_.starts[number], items.data() + scopes_.starts[number + 1]};
  }

  std::vector<Source> sources_;
  Lists scopes_;
  std::vector<i64> sizes_, strides_, cells_;
  mutable std::vector<Ends> ends_;
  mutable std::optional<Sense> sense_;
};

template <class T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// Converts cells that are `stride` bytes apart into consecutive numbers of another type.
template <class From, class To>
void convert_run(const char* from, i64 cells, i64 stride, To* to) {
  // A constant stride lets the compiler use vectors.
  if (stride == sizeof(From)) {
    for (i64 i = 0; i < cells; ++i) to[i] = To(load<From>(from + i * i64{sizeof(From)}));
  } else {
    for (i64 i = 0; i < cells; ++i) to[i] = To(load<From>(from + i * stride));
  }
}

struct Axis {
  i64 size, stride;
};

// Writes the axes with more than one state to `axes`, and joins neighbours that are contiguous in memory; returns the
// number of axes written.
inline int joined(std::span<const i64> sizes, std::span<const i64> strides, Axis* axes) {
  int count = 0;
  for (std::size_t a = 0; a < sizes.size(); ++a) {
    if (sizes[a] == 1) continue;
    if (count && axes[count - 1].stride == strides[a] * sizes[a]) {
      axes[count - 1] = {axes[count - 1].size * sizes[a], strides[a]};
    } else {
      axes[count++] = {sizes[a], strides[a]};
    }
  }
  return count;
}

// Visits `count` cells from number `start` on, in runs along the last axis, the fastest: visit(offset, cells, stride).
template <class Visit>
void walk(std::span<const Axis> axes, i64 start, i64 count, Visit visit) {
  if (axes.empty()) {
    if (count > 0) visit(i64{0}, i64{1}, i64{0});
    return;
  }
  std::array<i64, kMostAxes> position;
  const int last = int(axes.size()) - 1;
  i64 offset = 0;
  for (int a = last; a >= 0; --a) {
    position[a] = start % axes[a].size;
    start /= axes[a].size;
    offset += position[a] * axes[a].stride;
  }
  for (;;) {
    const i64 run = std::min(count, axes[last].size - position[last]);
    visit(offset, run, axes[last].stride);
    count -= run;
    if (count <= 0) return;
    offset -= position[last] * axes[last].stride;
    position[last] = 0;
    for (int a = last - 1;; --a) {
      offset += axes[a].stride;
      if (++position[a] < axes[a].size) break;
      offset -= axes[a].size * axes[a].stride;
      position[a] = 0;
    }
  }
}

}  // namespace elimina::tables
