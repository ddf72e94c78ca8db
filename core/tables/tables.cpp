#include "tables/tables.hpp"

#include <algorithm>
#include <numeric>

#include "stop.hpp"

namespace elimina::tables {
namespace {

// Largest number of cells of a table whose axes are compared: larger ones take milliseconds to read.
constexpr i64 kMostCompared = i64{1} << 20;

// Smallest and largest allowed value of a range of cells.
template <class T>
struct Range {
  T worst;
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
  bool any = false, forbids = false, has_nan = false;

  void add(T value) {
    if (value == worst) {
      forbids = true;
      return;
    }
    any = true;
    has_nan |= value != value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void add(const char* values, i64 count, i64 stride) {
    i64 i = 0;
    if (stride == sizeof(T)) i = add_lanes(values, count);
    for (; i < count; ++i) add(load<T>(values + i * stride));
  }

 private:
  // Adds consecutive cells to the range, eight at a time for vector instructions; returns the number of those cells.
  i64 add_lanes(const char* from, i64 count) {
    constexpr int kLanes = 8;
    T lows[kLanes], highs[kLanes], bad[kLanes]{}, nan[kLanes]{};
    std::fill_n(lows, kLanes, low);
    std::fill_n(highs, kLanes, high);
    i64 i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      T values[kLanes];
      std::memcpy(values, from + i * i64{sizeof(T)}, sizeof(values));
      for (int lane = 0; lane < kLanes; ++lane) {
        const T value = values[lane], best = value == worst ? std::numeric_limits<T>::max() : value,
                largest = value == worst ? std::numeric_limits<T>::lowest() : value;
        lows[lane] = best < lows[lane] ? best : lows[lane];
        highs[lane] = highs[lane] < largest ? largest : highs[lane];
        bad[lane] = value == worst ? T(1) : bad[lane];
        if constexpr (!std::is_integral_v<T>) nan[lane] = value != value ? T(1) : nan[lane];
      }
    }
    low = *std::min_element(lows, lows + kLanes);
    high = *std::max_element(highs, highs + kLanes);
    any |= low <= high;
    forbids |= *std::max_element(bad, bad + kLanes) != T(0);
    has_nan |= *std::max_element(nan, nan + kLanes) != T(0);
    return i;
  }
};

template <class T>
Ends ends_as(const Tables& tables, i64 number, Sense sense) {
  const Source& source = tables.source(number);
  Range<T> range{forbidden<T>(sense)};
  if (const Listing* listing = source.listing.get()) {
    range.add(source.values, listing->tuples, listing->value_step);
    if (listing->tuples < tables.cells(number))
      range.add(std::is_integral_v<T> ? T(listing->integer_default) : T(listing->real_default));
  } else {
    std::array<Axis, kMostAxes> axes;
    const int count = joined(tables.sizes(number), tables.strides(number), axes.data());
    walk({axes.data(), std::size_t(count)}, 0, tables.cells(number),
         [&](i64 offset, i64 cells, i64 stride) { range.add(source.values + offset, cells, stride); });
  }
  Ends ends;
  ends.any = range.any, ends.forbids = range.forbids, ends.has_nan = range.has_nan;
  if (!range.any) return ends;
  if constexpr (std::is_integral_v<T>) {
    ends.least = range.low;
    ends.largest = range.high;
  } else {
    ends.low = range.low;
    ends.high = range.high;
  }
  return ends;
}

}  // namespace

void Tables::reserve(std::size_t tables) {
  sources_.reserve(tables);
  cells_.reserve(tables);
  scopes_.starts.reserve(tables + 1);
}

void Tables::add(const Source& source, std::span<const int> scope, std::span<const i64> sizes,
                 std::span<const i64> strides) {
  sources_.push_back(source);
  scopes_.append(scope);
  sizes_.insert(sizes_.end(), sizes.begin(), sizes.end());
  strides_.insert(strides_.end(), strides.begin(), strides.end());
  strides_.resize(sizes_.size());
  i64 cells = 1;
  for (const i64 size : sizes) cells = plan::times(cells, size);
  cells_.push_back(cells);
}

const std::vector<Ends>& Tables::ends(Sense sense) const {
  if (sense_ == sense) return ends_;
  // A stop request throws, and then the old ranges stay.
  std::vector<Ends> ends;
  ends.reserve(sources_.size());
  Looks looks;
  for (i64 number = 0; number < size(); ++number) {
    looks.look();
    ends.push_back(ends_of(number, sense));
  }
  ends_ = std::move(ends);
  sense_ = sense;
  return ends_;
}

Ends Tables::ends_of(i64 number, Sense sense) const {
  switch (sources_[number].type) {
    case Type::f64: return ends_as<double>(*this, number, sense);
    case Type::f32: return ends_as<float>(*this, number, sense);
    case Type::i64: break;
  }
  return ends_as<i64>(*this, number, sense);
}

i64 Tables::first_mismatch(std::span<const i64> sizes) const {
  Looks looks;
  for (i64 number = 0; number < size(); ++number) {
    looks.look();
    const auto variables = scope(number);
    const auto states = this->sizes(number);
    for (std::size_t a = 0; a < variables.size(); ++a)
      if (variables[a] < 0 || variables[a] >= i64(sizes.size()) || sizes[variables[a]] != states[a]) return number;
  }
  return -1;
}

std::vector<i64> Tables::unusual(Sense sense, double low, double high) const {
  std::vector<i64> numbers;
  const std::vector<Ends>& ranges = ends(sense);
  for (i64 number = 0; number < size(); ++number) {
    const Ends& range = ranges[number];
    const bool is_integral = sources_[number].type == Type::i64;
    bool is_usual = !range.has_nan;
    if (range.any) {
      is_usual &= low <= (is_integral ? double(range.least) : range.low);
      is_usual &= (is_integral ? double(range.largest) : range.high) <= high;
    }
    // The range leaves out the default of a sparse table that lists all tuples.
    if (const Listing* listing = sources_[number].listing.get()) {
      const double value = is_integral ? double(listing->integer_default) : listing->real_default;
      is_usual &= low <= value && value <= high;
    }
    if (!is_usual) numbers.push_back(number);
  }
  return numbers;
}

void Tables::replace(i64 number, const Source& source, std::span<const i64> strides) {
  sources_[number] = source;
  std::copy(strides.begin(), strides.end(), strides_.begin() + scopes_.starts[number]);
  if (sense_) ends_[number] = ends_of(number, *sense_);
}

std::vector<int> Tables::idle(i64 number) const {
  std::vector<int> idle_axes;
  const Source& source = sources_[number];
  if (source.listing || cells_[number] > kMostCompared || cells_[number] == 0) return idle_axes;
  const std::span<const i64> size = sizes(number), step = strides(number);
  const std::size_t width = source.type == Type::f32 ? sizeof(float) : sizeof(double);
  std::array<i64, kMostAxes> position;
  for (std::size_t axis = 0; axis < size.size(); ++axis) {
    if (size[axis] == 1) continue;
    position.fill(0);
    const char* cell = source.values;
    bool is_idle = true, is_end = false;
    while (is_idle && !is_end) {
      for (i64 x = 1; is_idle && x < size[axis]; ++x) is_idle = std::memcmp(cell, cell + x * step[axis], width) == 0;
      is_end = true;
      for (std::size_t a = size.size(); is_end && a-- > 0;) {
        if (a == axis) continue;
        cell += step[a];
        if (++position[a] < size[a]) is_end = false;
        else cell -= size[a] * step[a], position[a] = 0;
      }
    }
    if (is_idle) idle_axes.push_back(int(axis));
  }
  if (i64(idle_axes.size()) == std::ranges::count_if(size, [](i64 states) { return states > 1; })) idle_axes.clear();
  return idle_axes;
}

const char* Tables::at(i64 number, std::span<const i64> assignment) const {
  const Source& source = sources_[number];
  const std::span<const int> variables = scope(number);
  if (!source.listing) {
    const char* cell = source.values;
    const std::span<const i64> steps = strides(number);
    for (std::size_t a = 0; a < variables.size(); ++a) cell += assignment[variables[a]] * steps[a];
    return cell;
  }
  const Listing& listing = *source.listing;
  for (i64 tuple = 0; tuple < listing.tuples; ++tuple) {
    const char* row = listing.rows + tuple * listing.row_step;
    std::size_t a = 0;
    while (a < variables.size() && load<i32>(row + i64(a) * listing.column_step) == assignment[variables[a]]) ++a;
    if (a == variables.size()) return source.values + tuple * listing.value_step;
  }
  return nullptr;
}

Lists Tables::groups() const {
  Lists scopes;  // sorted scopes
  int variables = 0;
  std::vector<int> sequence;
  Looks looks;
  for (i64 number = 0; number < size(); ++number) {
    looks.look();
    scopes.append(scope(number));
    const auto scope_of_table = std::span(scopes.items).last(scope(number).size());
    std::sort(scope_of_table.begin(), scope_of_table.end());
    if (scope_of_table.empty()) continue;
    variables = std::max(variables, scope_of_table.back() + 1);
    sequence.push_back(int(number));
  }
  std::stable_sort(sequence.begin(), sequence.end(), [&](int a, int b) { return scopes[a].size() > scopes[b].size(); });
  // Groups whose scopes have variable v are listed in touching[starts[v] .. ends[v]). A group is named by its first
  // table.
  std::vector<i64> starts(variables + 1);
  for (const int v : scopes.items) ++starts[v + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<i64> ends(starts.begin(), starts.end() - 1);
  std::vector<int> touching(scopes.items.size()), home(size(), -1);
  const auto touched = [&](int v) { return std::span(touching).subspan(starts[v], ends[v] - starts[v]); };
  for (const int number : sequence) {
    looks.look();
    const auto scope_of_table = scopes[number];
    const int rarest = *std::min_element(scope_of_table.begin(), scope_of_table.end(),
                                         [&](int a, int b) { return touched(a).size() < touched(b).size(); });
    int smallest = -1;
    for (const int group : touched(rarest)) {
      const auto other = scopes[group];
      const bool is_within = std::includes(other.begin(), other.end(), scope_of_table.begin(), scope_of_table.end());
      if (is_within && (smallest < 0 || cells_[group] < cells_[smallest] || other.size() == scope_of_table.size()))
        smallest = group;
      if (is_within && other.size() == scope_of_table.size()) break;
    }
    home[number] = smallest < 0 ? number : smallest;
    if (smallest >= 0) continue;
    for (const int v : scope_of_table) touching[ends[v]++] = number;
  }
  // Members in the order of `sequence`, each group at the place of its first table.
  std::vector<i64> count(size() + 1), next(size());
  for (const int number : sequence) ++count[home[number]];
  Lists result;
  for (const int number : sequence)
    if (home[number] == number) {
      next[number] = i64(result.items.size());
      result.items.resize(result.items.size() + std::size_t(count[number]));
      result.close();
    }
  for (const int number : sequence) result.items[next[home[number]]++] = number;
  return result;
}

}  // namespace elimina::tables
