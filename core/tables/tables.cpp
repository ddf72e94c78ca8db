#include "tables/tables.hpp"

#include <numeric>
#include <unordered_map>

namespace elimina::tables {
namespace {

// The smallest and the largest allowed value of those that were given.
template <class T>
struct Range {
  T worst;
  T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::lowest();
  bool any = false;

  void take(T value) {
    if (value == worst) return;
    any = true;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void take(const char* place, i64 count, i64 stride) {
    for (i64 i = 0; i < count; ++i) take(load<T>(place + i * stride));
  }
};

template <class T>
Ends ends_as(const Tables& tables, i64 number, Sense sense) {
  const Source& own = tables.source(number);
  Range<T> range{forbidden<T>(sense)};
  if (own.rows) {
    range.take(own.values, own.tuples, own.value_step);
    if (own.tuples < tables.cells(number)) range.take(std::is_integral_v<T> ? T(own.integer_default) : T(own.real_default));
  } else {
    std::array<Axis, kMostAxes> axes;
    const int count = joined(tables.sizes(number), tables.strides(number), axes.data());
    walk({axes.data(), std::size_t(count)}, 0, tables.cells(number), [&](i64 offset, i64 cells, i64 stride) { range.take(own.values + offset, cells, stride); });
  }
  Ends found;
  found.any = range.any;
  if (!range.any) return found;
  if constexpr (std::is_integral_v<T>) {
    found.least = range.low;
    found.most = range.high;
  } else {
    found.low = range.low;
    found.high = range.high;
  }
  return found;
}

}  // namespace

void Tables::add(const Source& source, std::span<const int> scope, std::span<const i64> sizes, std::span<const i64> strides) {
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
  ends_.clear();
  for (i64 number = 0; number < size(); ++number) ends_.push_back(ends_of(number, sense));
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

void Tables::replace(i64 number, const Source& source, std::span<const i64> strides) {
  sources_[number] = source;
  std::copy(strides.begin(), strides.end(), strides_.begin() + scopes_.starts[number]);
  if (sense_) ends_[number] = ends_of(number, *sense_);
}

const char* Tables::at(i64 number, std::span<const i64> assignment) const {
  const Source& own = sources_[number];
  const std::span<const int> variables = scope(number);
  if (!own.rows) {
    const char* place = own.values;
    const std::span<const i64> steps = strides(number);
    for (std::size_t a = 0; a < variables.size(); ++a) place += assignment[variables[a]] * steps[a];
    return place;
  }
  for (i64 tuple = 0; tuple < own.tuples; ++tuple) {
    const char* row = own.rows + tuple * own.row_step;
    std::size_t a = 0;
    while (a < variables.size() && load<i32>(row + i64(a) * own.column_step) == assignment[variables[a]]) ++a;
    if (a == variables.size()) return own.values + tuple * own.value_step;
  }
  return nullptr;
}

Lists Tables::groups() const {
  // Tables of equal scopes, as sets, in the sequence in which these appear.
  struct Equal {
    std::vector<int> scope, members;
  };
  std::vector<Equal> equal;
  std::unordered_multimap<std::size_t, int> known;
  std::vector<int> sorted;
  int variables = 0;
  for (i64 number = 0; number < size(); ++number) {
    const std::span<const int> own = scope(number);
    if (own.empty()) continue;
    sorted.assign(own.begin(), own.end());
    std::sort(sorted.begin(), sorted.end());
    variables = std::max(variables, sorted.back() + 1);
    std::size_t hash = 1469598103934665603u;
    for (const int v : sorted) hash = (hash ^ std::size_t(v)) * 1099511628211u;
    int found = -1;
    for (auto [at, end] = known.equal_range(hash); at != end; ++at)
      if (equal[at->second].scope == sorted) found = at->second;
    if (found < 0) {
      found = int(equal.size());
      known.emplace(hash, found);
      equal.push_back({sorted, {}});
    }
    equal[found].members.push_back(int(number));
  }
  std::vector<int> sequence(equal.size());
  std::iota(sequence.begin(), sequence.end(), 0);
  std::stable_sort(sequence.begin(), sequence.end(), [&](int a, int b) { return equal[a].scope.size() > equal[b].scope.size(); });
  std::vector<std::vector<int>> touching(variables);
  std::vector<int> kept;
  for (const int number : sequence) {
    const std::vector<int>& own = equal[number].scope;
    const int rarest = *std::min_element(own.begin(), own.end(), [&](int a, int b) { return touching[a].size() < touching[b].size(); });
    int smallest = -1;
    const auto cells_of = [&](int group) { return cells_[equal[group].members.front()]; };
    for (const int group : touching[rarest]) {
      const std::vector<int>& other = equal[group].scope;
      if (other.size() > own.size() && std::includes(other.begin(), other.end(), own.begin(), own.end()) && (smallest < 0 || cells_of(group) < cells_of(smallest)))
        smallest = group;
    }
    if (smallest >= 0) {
      equal[smallest].members.insert(equal[smallest].members.end(), equal[number].members.begin(), equal[number].members.end());
      continue;
    }
    kept.push_back(number);
    for (const int v : own) touching[v].push_back(number);
  }
  Lists result;
  for (const int number : kept) result.append(equal[number].members);
  return result;
}

}  // namespace elimina::tables
