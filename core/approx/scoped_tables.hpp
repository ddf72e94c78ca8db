// Products and sums of dense tables, where one scope contains the other.
#pragma once
#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

namespace elimina::approx {

// Scopes (sets of variables), stored one after another: scope i is members[starts[i] .. starts[i + 1]).
struct ScopeList {
  std::vector<std::int64_t> starts;
  std::vector<std::int32_t> members;

  std::span<const std::int32_t> operator[](std::size_t number) const {
    return std::span(members).subspan(starts[number], starts[number + 1] - starts[number]);
  }
  std::size_t count() const { return starts.size() - 1; }
  void append(std::span<const std::int32_t> scope) {
    members.insert(members.end(), scope.begin(), scope.end());
    starts.push_back(std::int64_t(members.size()));
  }
};

// Axes of a table, merged into runs for use with another table over some of its variables. The other table has either
// all axes of a run or none.
struct Runs {
  std::vector<std::int64_t> sizes, strides;  // sizes, slow to fast; other table's strides, 0 if it lacks the axes

  auto operator<=>(const Runs&) const = default;
};

// Returns the number of cells of a table, capped at 2^62.
std::int64_t cells_of(std::span<const std::int32_t> scope, std::span<const std::int64_t> sizes);

// Set or return the runs of a table over `whole` (slow to fast) with another table over `subscope`, some of these
// variables.
void set_runs(Runs& runs, std::span<const std::int32_t> whole, std::span<const std::int32_t> subscope,
              std::span<const std::int64_t> sizes);
Runs runs_of(std::span<const std::int32_t> whole, std::span<const std::int32_t> subscope,
             std::span<const std::int64_t> sizes);

// Calls work(first cell of a fast run, the corresponding cell of the other table) for each fast run; a fast run has
// `runs.sizes.back()` cells.
template <class Work>
[[gnu::always_inline]] inline void for_rows(const Runs& runs, Work work) {
  const std::size_t axes = runs.sizes.size();
  const std::int64_t fast = runs.sizes[axes - 1];
  if (axes == 1) return work(0, 0);
  const std::int64_t middle = runs.sizes[axes - 2], stride = runs.strides[axes - 2];
  std::array<std::int64_t, 64> digits;
  std::fill_n(digits.begin(), axes - 2, 0);
  std::int64_t cell = 0, other = 0;
  for (;;) {
    for (std::int64_t row = 0; row < middle; ++row, cell += fast) work(cell, other + row * stride);
    std::size_t axis = axes - 2;
    for (;;) {
      if (axis-- == 0) return;
      other += runs.strides[axis];
      if (++digits[axis] < runs.sizes[axis]) break;
      other -= runs.strides[axis] * runs.sizes[axis];
      digits[axis] = 0;
    }
  }
}

// Overwrites a table with another one, repeated along the axes that the other one lacks.
void set_to(double* table, const Runs& runs, const double* factor);

// Multiplies a table by another one.
void multiply_by(double* table, const Runs& runs, const double* factor);

// Adds another table to a table.
void add_to(double* table, const Runs& runs, const double* term);

// Sums a table over the axes that `sums` lacks, and adds the result to `sums`.
void add_up(const double* table, const Runs& runs, double* sums);

// Multiplies a table by another one. This overload and the next two functions prepare runs themselves, for tables that
// are combined only once.
void multiply_by(double* table, std::span<const std::int32_t> whole, const double* factor,
                 std::span<const std::int32_t> subscope, std::span<const std::int64_t> sizes);
// Overwrites a table with another one, repeated along the axes that the other one lacks.
void spread(double* table, std::span<const std::int32_t> whole, const double* factor,
            std::span<const std::int32_t> axes, std::span<const std::int64_t> sizes);
// Sums a table over the axes that `sums` lacks, and adds the result to `sums`.
void add_up(const double* table, std::span<const std::int32_t> whole, double* sums,
            std::span<const std::int32_t> subscope, std::span<const std::int64_t> sizes);

double sum_of(std::span<const double> cells);
double largest_of(std::span<const double> cells);

}  // namespace elimina::approx
