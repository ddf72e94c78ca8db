#include "tables/encode.hpp"

#include <cfloat>
#include <cmath>

#include "exec/paths.hpp"
#include "exec/share.hpp"
#include "stop.hpp"

namespace elimina::tables {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Number of cells between two checks for a stop request, about a millisecond of work, and number of cells that take as
// long as the set-up of a factor's table.
constexpr i64 kLookCells = 1 << 20, kFactorCells = 256;

// Least number of cells that several threads encode: some tenths of a millisecond of work, far more than waking them up
// takes; and number of cells of small factors that a thread takes at a time.
constexpr i64 kSharedCells = 1 << 18, kGroupCells = 1 << 14;

// The library's logarithm of 0 is slow, and most values of some networks are 0.
double log_of(double value) { return value == 0 ? -kInfinity : std::log(value); }

// Least number of cells of a factor whose order of visits matters: smaller ones stay in the nearest cache.
constexpr i64 kTransposedCells = 1 << 12;
// If a factor's order of visits matters, its cells are visited in blocks. A block has about kLineCells cells (a cache
// line) along the axis with the smallest stride in the table, and about kRows cells along the axis with the smallest
// stride in the arena. kRows is so small that the TLB holds the pages of the block's table cells.
constexpr i64 kLineCells = 8, kRows = 128;

// An axis of a factor, or a part of one: `size` states, `step` states apart.
struct Digit {
  int axis;
  i64 size, step;
};

// One of the tables that are joined into a factor. The factor's scope contains the table's; the table is read while the
// factor is filled block by block.
struct Member {
  i64 number;
  std::array<Axis, kMostAxes> axes;
  int count;
  // Sparse tables: numbers of the listed cells, ascending, and their values.
  std::vector<std::pair<i64, i64>> cells;
};

// Walks over the cells of a factor, and finds the place of each cell in the factor and in the tables that it joins.
class FactorWalk {
 public:
  FactorWalk(const Tables& tables, const FactorArrays& factors) : tables_(tables), factors_(factors) {}

  void begin(i64 factor) {
    const i64 start = factors_.starts[factor], axes = factors_.starts[factor + 1] - start;
    const auto scope = factors_.scopes.subspan(start, axes);
    const auto sizes = factors_.sizes.subspan(start, axes), strides = factors_.strides.subspan(start, axes);
    const i64 first = factors_.member_starts[factor];
    const auto numbers = factors_.members.subspan(first, factors_.member_starts[factor + 1] - first);
    order(scope, sizes, strides, numbers);
    out_count_ = join_digits(strides, out_.data());
    offset_ = factors_.offsets[factor];
    members_.resize(numbers.size());
    for (std::size_t m = 0; m < members_.size(); ++m) begin(members_[m], numbers[m], scope);
  }

  const std::vector<Member>& members() const { return members_; }
  std::span<const Axis> out() const { return {out_.data(), std::size_t(out_count_)}; }
  i64 offset() const { return offset_; }

  // Visits boxes with at most `block` cells, in the order of the cells: visit(start, cells).
  template <class Visit>
  void each_block(i64 block, Visit visit) const {
    i64 cells = 1;
    for (const i64 size : sizes_) cells *= size;
    if (cells <= block) return visit(i64{0}, cells);
    int digit = int(sizes_.size()) - 1;
    i64 inner = 1;
    while (inner * sizes_[digit] <= block) inner *= sizes_[digit--];
    const i64 whole = inner * sizes_[digit], step = block / inner * inner;
    for (i64 start = 0; start < cells; start += whole)
      for (i64 first = 0; first < whole; first += step) visit(start + first, std::min(step, whole - first));
  }

 private:
  // Chooses the order in which a factor's cells are visited.
  // If neighbouring cells differ by one axis in the table and by another axis in the arena, a few states of the first
  // axis are taken at a time, for all states of the other: whole cache lines are read and written.
  void order(std::span<const int> scope, std::span<const i64> sizes, std::span<const i64> strides,
             std::span<const int> numbers) {
    digits_.clear();
    sizes_ = sizes;
    i64 cells = 1;
    for (const i64 size : sizes) cells *= size;
    if (cells < kTransposedCells) return;
    for (const int number : numbers)
      if (tables_.source(number).listing) return;
    const int read = axis_of_neighbours(scope, sizes, numbers[0]), written = nearest(sizes, strides);
    if (read < 0 || read == written) return;
    for (int axis = 0; axis < int(sizes.size()); ++axis)
      if (axis != read && axis != written) digits_.push_back({axis, sizes[axis], 1});
    const i64 runs = divisor(sizes[read], kLineCells), rows = divisor(sizes[written], kRows);
    digits_.push_back({written, sizes[written] / rows, rows});
    digits_.push_back({read, sizes[read] / runs, runs});
    digits_.push_back({written, rows, 1});
    digits_.push_back({read, runs, 1});
    digit_sizes_.clear();
    for (const Digit& digit : digits_) digit_sizes_.push_back(digit.size);
    sizes_ = digit_sizes_;
  }

  // Returns the axis of the scope along which a table's cells are nearest to each other.
  int axis_of_neighbours(std::span<const int> scope, std::span<const i64> sizes, int number) {
    strides_.assign(scope.size(), 0);
    const auto axes = tables_.scope(number);
    for (std::size_t a = 0; a < axes.size(); ++a)
      strides_[std::find(scope.begin(), scope.end(), axes[a]) - scope.begin()] = tables_.strides(number)[a];
    return nearest(sizes, strides_);
  }

  // Returns the axis with the smallest stride; -1 if there is none.
  static int nearest(std::span<const i64> sizes, std::span<const i64> strides) {
    int axis = -1;
    for (int a = 0; a < int(sizes.size()); ++a)
      if (sizes[a] > 1 && strides[a] != 0 && (axis < 0 || std::abs(strides[a]) <= std::abs(strides[axis]))) axis = a;
    return axis;
  }

  // Returns the largest divisor of a size between limit / 4 and limit; the size itself if there is none.
  static i64 divisor(i64 size, i64 limit) {
    for (i64 number = limit; number >= limit / 4; --number)
      if (size % number == 0) return number;
    return size;
  }

  // Writes the axes of a table with these strides to `axes`, in the order in which the factor's cells are visited;
  // returns the number of axes written.
  int join_digits(std::span<const i64> strides, Axis* axes) {
    if (digits_.empty()) return joined(sizes_, strides, axes);
    digit_strides_.clear();
    for (const Digit& digit : digits_) digit_strides_.push_back(strides[digit.axis] * digit.step);
    return joined(sizes_, digit_strides_, axes);
  }

  void begin(Member& member, i64 number, std::span<const int> scope) {
    member.number = number;
    const Source& source = tables_.source(number);
    const auto axes = tables_.scope(number);
    const auto sizes = tables_.sizes(number);
    std::vector<i64>& strides = strides_;
    strides.assign(scope.size(), 0);
    std::vector<i64> steps;
    if (!source.listing) {
      for (std::size_t a = 0; a < axes.size(); ++a)
        strides[std::find(scope.begin(), scope.end(), axes[a]) - scope.begin()] = tables_.strides(number)[a];
    } else {
      // Cells are numbered by the table's axes, which are taken in the factor's order.
      i64 step = 1;
      steps.resize(axes.size());
      for (std::size_t axis = scope.size(); axis-- > 0;) {
        const auto a = std::find(axes.begin(), axes.end(), scope[axis]) - axes.begin();
        if (a == std::ptrdiff_t(axes.size())) continue;
        strides[axis] = steps[a] = step;
        step *= sizes[a];
      }
      const Listing& listing = *source.listing;
      member.cells.resize(listing.tuples);
      for (i64 tuple = 0; tuple < listing.tuples; ++tuple) {
        i64 cell = 0;
        for (std::size_t a = 0; a < axes.size(); ++a)
          cell += steps[a] * load<i32>(listing.rows + tuple * listing.row_step + i64(a) * listing.column_step);
        member.cells[tuple] = {cell, tuple};
      }
      std::sort(member.cells.begin(), member.cells.end());
    }
    member.count = join_digits(strides, member.axes.data());
  }

  const Tables& tables_;
  const FactorArrays& factors_;
  std::vector<Digit> digits_;   // digits of the order; empty: the axes in the order of the scope
  std::span<const i64> sizes_;  // sizes of the digits
  std::vector<i64> digit_sizes_, digit_strides_;
  std::array<Axis, kMostAxes> out_;
  int out_count_ = 0;
  i64 offset_ = 0;
  std::vector<Member> members_;
  std::vector<i64> strides_;
};

// The largest and the smallest positive value; 0 and infinity if there is none.
struct Positive {
  double high = 0, low = kInfinity;
};

// A block of a factor's cells. Each block of products has its own exponent: a product is the cell times 2^exponent.
struct Box {
  i64 start, count, exponent = 0;
  Positive ends = {};
  bool exact = true;  // true if all positive products are normal numbers
};

// Encoder of boxes of factors, with buffers of its own.
class Encoder {
 public:
  Encoder(const Tables& tables, Sense sense, Rule rule, i64 limit, Number type, char* arena)
      : tables_(tables), sense_(sense), rule_(rule), limit_(limit), type_(type), arena_(arena) {}

  void write(const FactorWalk& factor_walk, Box& box) {
    walk_ = &factor_walk;
    look(box.count);
    if (rule_ == Rule::products) {
      write_product(box);
    } else if (rule_ == Rule::logs || (rule_ == Rule::distances && (type_ == Number::f32 || type_ == Number::f64))) {
      write_sums<double>(box, [](double a, double b) { return a + b; });
    } else if (rule_ == Rule::distances) {
      write_sums<i64>(box, [limit = limit_](i64 a, i64 b) { return std::min(a + b, limit); });
    } else if (rule_ == Rule::costs) {
      if (type_ == Number::f32 || type_ == Number::f64)
        write_sums<double>(box, [](double a, double b) { return std::max(a, b); });
      else write_sums<i64>(box, [](i64 a, i64 b) { return std::max(a, b); });
    } else {
      write_sums<i64>(box, [](i64 a, i64 b) { return a & b; });
    }
  }

  // Divides the products of a written box by another power of two.
  void scale_to(const FactorWalk& factor_walk, Box& box, i64 exponent) {
    walk_ = &factor_walk;
    look(box.count);
    total_.resize(box.count);
    fetch(box.start, box.count, total_.data());
    multiply(total_, box.ends, int(std::max<i64>(box.exponent - exponent, -4000)));
    box.exact &= store_product(box);
  }

 private:
  // Reads a block of a member's original numbers into a buffer.
  template <class T>
  void read(const Member& member, i64 start, i64 count, std::vector<T>& buffer) {
    const Source& source = tables_.source(member.number);
    const std::span<const Axis> axes{member.axes.data(), std::size_t(member.count)};
    buffer.resize(count);
    T* to = buffer.data();
    if (source.listing) {
      read_listed<T>(member, start, count, to);
      return;
    }
    const auto copy = [&]<class From>(From) {
      walk(axes, start, count, [&](i64 offset, i64 cells, i64 stride) {
        convert_run<From>(source.values + offset, cells, stride, to);
        to += cells;
      });
    };
    switch (source.type) {
      case Type::f64: copy(double{}); break;
      case Type::f32: copy(float{}); break;
      case Type::i64: copy(i64{}); break;
    }
  }

  template <class T>
  void read_listed(const Member& member, i64 start, i64 count, T* to) {
    const Source& source = tables_.source(member.number);
    const std::span<const Axis> axes{member.axes.data(), std::size_t(member.count)};
    // Factor and table have their axes in the same order, so the first cell of a block has the lowest cell of the
    // table, and the last one the highest.
    i64 low = 0, high = 0;
    walk(axes, start, 1, [&](i64 offset, i64, i64) { low = offset; });
    walk(axes, start + count - 1, 1, [&](i64 offset, i64, i64) { high = offset; });
    std::vector<T> cells(high - low + 1, source.type == Type::i64 ? T(source.listing->integer_default)
                                                                  : T(source.listing->real_default));
    const auto first = std::lower_bound(member.cells.begin(), member.cells.end(), std::pair<i64, i64>{low, 0});
    for (auto listed_cell = first; listed_cell != member.cells.end() && listed_cell->first <= high; ++listed_cell) {
      const char* entry = source.values + listed_cell->second * source.listing->value_step;
      T& cell = cells[listed_cell->first - low];
      switch (source.type) {
        case Type::f64: cell = T(load<double>(entry)); break;
        case Type::f32: cell = T(load<float>(entry)); break;
        case Type::i64: cell = T(load<i64>(entry)); break;
      }
    }
    walk(axes, start, count, [&](i64 offset, i64 run, i64 stride) {
      for (i64 i = 0; i < run; ++i) to[i] = cells[offset - low + i * stride];
      to += run;
    });
  }

  // Reads a block of a member, and encodes it by the rule.
  void convert(const Member& member, i64 start, i64 count, std::vector<double>& buffer) {
    const bool is_integer = tables_.source(member.number).type == Type::i64;
    if (rule_ == Rule::costs) {
      read(member, start, count, buffer);
      const double worst = is_integer ? double(forbidden<i64>(sense_)) : forbidden<double>(sense_),
                   sign = sense_ == Sense::min_cost ? 1 : -1;
      for (double& value : buffer) value = value == worst ? kInfinity : sign * value;
      return;
    }
    const Ends& ends = tables_.ends(sense_)[member.number];
    if (sense_ == Sense::probability) {
      read(member, start, count, buffer);
      const double high = ends.any ? std::log(is_integer ? double(ends.largest) : ends.high) : 0;
      if (rule_ == Rule::logs) {
        for (double& value : buffer) value = log_of(value) - high;
      } else {
        for (double& value : buffer) value = high - log_of(value);
      }
      return;
    }
    const bool minimised = sense_ == Sense::min_cost;
    if (!is_integer) {
      read(member, start, count, buffer);
      const double best = !ends.any ? 0 : minimised ? ends.low : ends.high;
      if (minimised) {
        for (double& value : buffer) value -= best;
      } else {
        for (double& value : buffer) value = best - value;
      }
      return;
    }
    // Integers beyond 2^53 are rounded only after the subtraction, which is exact on unsigned words.
    read(member, start, count, integers_);
    const u64 best = ends.any ? u64(minimised ? ends.least : ends.largest) : 0;
    const i64 worst = forbidden<i64>(sense_);
    buffer.resize(count);
    for (i64 i = 0; i < count; ++i) {
      const u64 word = u64(integers_[i]);
      buffer[i] = integers_[i] == worst ? kInfinity : double(minimised ? word - best : best - word);
    }
  }

  void convert(const Member& member, i64 start, i64 count, std::vector<i64>& buffer) {
    if (rule_ == Rule::distances) {
      read(member, start, count, buffer);
      const Ends& ends = tables_.ends(sense_)[member.number];
      const bool minimised = sense_ == Sense::min_cost;
      const u64 best = ends.any ? u64(minimised ? ends.least : ends.largest) : 0, limit = u64(limit_);
      const i64 worst = forbidden<i64>(sense_);
      for (i64& value : buffer) {
        // Costs far apart may overflow int64 on the way; differences of unsigned words are exact.
        const u64 distance = minimised ? u64(value) - best : best - u64(value);
        value = value == worst ? limit_ : i64(std::min(distance, limit));
      }
    } else if (rule_ == Rule::costs) {
      read(member, start, count, buffer);
      const i64 worst = forbidden<i64>(sense_), sign = sense_ == Sense::min_cost ? 1 : -1;
      for (i64& value : buffer) value = value == worst ? limit_ : sign * value;
    } else if (tables_.source(member.number).type == Type::i64) {
      read(member, start, count, buffer);
      const i64 worst = forbidden<i64>(sense_);
      for (i64& value : buffer) value = value != worst;
    } else {
      read(member, start, count, reals_);
      const double worst = forbidden<double>(sense_);
      buffer.resize(count);
      for (i64 i = 0; i < count; ++i) buffer[i] = reals_[i] != worst;
    }
  }

  template <class T>
  std::vector<T>& total() {
    if constexpr (std::is_same_v<T, double>) return total_;
    else return counts_;
  }
  template <class T>
  std::vector<T>& factor_buffer() {
    if constexpr (std::is_same_v<T, double>) return factor_;
    else return shares_;
  }

  template <class T, class Combine>
  void write_sums(const Box& box, Combine combine) {
    const std::vector<Member>& members = walk_->members();
    std::vector<T>&sum = total<T>(), &other = factor_buffer<T>();
    convert(members[0], box.start, box.count, sum);
    for (std::size_t m = 1; m < members.size(); ++m) {
      convert(members[m], box.start, box.count, other);
      for (i64 i = 0; i < box.count; ++i) sum[i] = combine(sum[i], other[i]);
    }
    store(box.start, box.count, sum);
  }

  static void widen(double value, double& high, double& low) {
    const double finite = value > 0 ? value : kInfinity;
    high = high < value ? value : high;
    low = finite < low ? finite : low;
  }

  static Positive positive(const std::vector<double>& values) {
    constexpr std::size_t kLanes = 8;
    Positive ends;
    std::size_t i = 0;
    if (values.size() >= kLanes) {
      double highs[kLanes]{}, lows[kLanes];
      std::fill_n(lows, kLanes, kInfinity);
      for (; i + kLanes <= values.size(); i += kLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane) widen(values[i + lane], highs[lane], lows[lane]);
      ends = {*std::max_element(highs, highs + kLanes), *std::min_element(lows, lows + kLanes)};
    }
    for (; i < values.size(); ++i) widen(values[i], ends.high, ends.low);
    return ends;
  }

  // Multiplies values by a power of two, which is exact in the normal range.
  static void multiply(std::vector<double>& values, Positive& ends, int exponent) {
    if (std::abs(exponent) < 1000) {
      const double power = std::ldexp(1.0, exponent);
      for (double& value : values) value *= power;
      ends = {ends.high * power, ends.low * power};
    } else {
      for (double& value : values) value = std::ldexp(value, exponent);
      ends = {std::ldexp(ends.high, exponent), std::ldexp(ends.low, exponent)};
    }
  }

  // Multiplies by the power of two that brings the largest value into [1, 2); returns the exponent.
  static int scale(std::vector<double>& values, Positive& ends) {
    if (ends.high == 0) return 0;
    const int exponent = std::ilogb(ends.high);
    if (exponent != 0) multiply(values, ends, -exponent);
    return exponent;
  }

  void write_product(Box& box) {
    const std::vector<Member>& members = walk_->members();
    const auto [start, count] = std::pair(box.start, box.count);
    read(members[0], start, count, total_);
    box.ends = positive(total_);
    box.exponent = scale(total_, box.ends);
    box.exact &= !(box.ends.low < DBL_MIN);
    for (std::size_t m = 1; m < members.size(); ++m) {
      read(members[m], start, count, factor_);
      Positive factor_ends = positive(factor_);
      box.exponent += scale(factor_, factor_ends);
      // If the product of the smallest values is a normal number, so are all products, and no cell has to be checked.
      if (box.ends.low * factor_ends.low < DBL_MIN) {
        read(members[m], start, count, reals_);
        for (i64 i = 0; i < count; ++i)
          box.exact &= !(total_[i] > 0 && reals_[i] > 0 && total_[i] * factor_[i] < DBL_MIN);
      }
      for (i64 i = 0; i < count; ++i) total_[i] *= factor_[i];
      box.ends = positive(total_);
      box.exponent += scale(total_, box.ends);
      box.exact &= !(box.ends.low < DBL_MIN);
    }
    box.exact &= store_product(box);
  }

  // Stores the products of a box, and sets its range to that of the stored numbers; returns true if all positive
  // products are normal numbers.
  bool store_product(Box& box) {
    store(box.start, box.count, total_);
    bool is_normal = true;
    of_float([&]<class To>(To) {
      // The condition only keeps GCC 12 from skipping the rounding of both numbers, which are narrowed and widened
      // again: infinity would stay infinity without the condition, too.
      box.ends = {double(To(box.ends.high)), box.ends.low < kInfinity ? double(To(box.ends.low)) : kInfinity};
      is_normal = !(box.ends.low < double(std::numeric_limits<To>::min()));
    });
    if (box.ends.low == 0) {
      fetch(box.start, box.count, total_.data());
      box.ends = positive(total_);
    }
    return is_normal;
  }

  // Checks for a stop request now and then; called before work on `cells` cells of each member.
  void look(i64 cells) {
    unseen_ += (kFactorCells + cells) * i64(walk_->members().size());
    if (unseen_ < kLookCells) return;
    // After a stop request, each later box throws, too.
    caller_.check();
    unseen_ = 0;
  }

  // Calls act with a number of the products' type.
  template <class Act>
  void of_float(Act act) {
    if (type_ == Number::f32) act(float{});
    else act(double{});
  }

  template <class Act>
  void of_type(Act act) {
    switch (type_) {
      case Number::i16: act(i16{}); break;
      case Number::i32: act(i32{}); break;
      case Number::i64: act(i64{}); break;
      case Number::u64: act(u64{}); break;
      case Number::f32: act(float{}); break;
      case Number::f64: act(double{}); break;
    }
  }

  template <class T>
  void store(i64 start, i64 count, const std::vector<T>& values) {
    of_type([&]<class To>(To) {
      To* arena = reinterpret_cast<To*>(arena_) + walk_->offset();
      const T* from = values.data();
      walk(walk_->out(), start, count, [&](i64 offset, i64 cells, i64 stride) {
        To* to = arena + offset;
        // A constant stride lets the compiler use vectors.
        if (stride == 1) {
          for (i64 i = 0; i < cells; ++i) to[i] = To(from[i]);
        } else {
          for (i64 i = 0; i < cells; ++i) to[i * stride] = To(from[i]);
        }
        from += cells;
      });
    });
  }

  void fetch(i64 start, i64 count, double* to) {
    of_type([&]<class From>(From) {
      const char* arena = arena_ + walk_->offset() * i64{sizeof(From)};
      walk(walk_->out(), start, count, [&](i64 offset, i64 cells, i64 stride) {
        convert_run<From>(arena + offset * i64{sizeof(From)}, cells, stride * i64{sizeof(From)}, to);
        to += cells;
      });
    });
  }

  const Tables& tables_;
  const Sense sense_;
  const Rule rule_;
  const i64 limit_;
  const Number type_;
  char* const arena_;
  const Patience caller_ = patience;

  const FactorWalk* walk_ = nullptr;
  i64 unseen_ = 0;  // number of cells since the last check for a stop request
  std::vector<double> total_, factor_, reals_;
  std::vector<i64> counts_, shares_, integers_;
};

// The work of one thread.
struct Worker {
  FactorWalk walk;
  Encoder encoder;
  std::vector<Box> boxes;
};

// Returns the work of encoding a factor, in cells: the cells that are read from its tables, and the set-up of each
// table as a number of cells.
i64 work_of(const FactorArrays& factors, i64 factor) {
  i64 cells = 1;
  for (i64 axis = factors.starts[factor]; axis < factors.starts[factor + 1]; ++axis) cells *= factors.sizes[axis];
  return (kFactorCells + cells) * (factors.member_starts[factor + 1] - factors.member_starts[factor]);
}

// Writes a factor with all of these workers. The boxes do not depend on the number of workers.
void write_factor(std::span<Worker> workers, i64 factor, i64 block, Box* whole) {
  Worker& first_worker = workers.front();
  const int threads = int(workers.size());
  std::vector<Box>& boxes = first_worker.boxes;
  first_worker.walk.begin(factor);
  boxes.clear();
  first_worker.walk.each_block(block, [&](i64 start, i64 count) { boxes.push_back({start, count}); });
  share(threads, 0, i64(boxes.size()), [&](i64 box, int thread) {
    workers[std::size_t(thread)].encoder.write(first_worker.walk, boxes[std::size_t(box)]);
  });
  if (!whole) return;
  i64 exponent = std::numeric_limits<i64>::min();
  for (const Box& box : boxes)
    if (box.ends.high > 0) exponent = std::max(exponent, box.exponent);
  if (exponent == std::numeric_limits<i64>::min()) exponent = 0;
  share(threads, 0, i64(boxes.size()), [&](i64 number, int thread) {
    Box& box = boxes[std::size_t(number)];
    if (box.ends.high > 0 && box.exponent != exponent)
      workers[std::size_t(thread)].encoder.scale_to(first_worker.walk, box, exponent);
  });
  *whole = {0, 0, exponent};
  for (const Box& box : boxes) {
    whole->ends = {std::max(whole->ends.high, box.ends.high), std::min(whole->ends.low, box.ends.low)};
    whole->exact &= box.exact;
  }
}

}  // namespace

Written encode(const Tables& tables, Sense sense, Rule rule, i64 limit, const FactorArrays& factors,
               std::span<const i64> numbers, Number type, char* arena, i64 block, int threads) {
  if (rule != Rule::products && rule != Rule::support) tables.ends(sense);
  std::vector<Worker> workers;
  workers.reserve(std::size_t(threads));
  for (int thread = 0; thread < threads; ++thread)
    workers.push_back({{tables, factors}, {tables, sense, rule, limit, type, arena}, {}});
  const std::span all(workers);
  std::vector<Box> wholes(rule == Rule::products ? numbers.size() : 0);
  const auto write = [&](std::span<Worker> of_factor, std::size_t position) {
    write_factor(of_factor, numbers[position], block, wholes.empty() ? nullptr : &wholes[position]);
  };
  // Threads share the boxes of a large factor. Between two large factors, they share groups of small ones.
  std::vector<std::size_t> groups;
  i64 work = 0, group_work = 0;
  const auto write_groups = [&](std::size_t end) {
    groups.push_back(end);
    const bool is_shared = work >= kSharedCells;
    if (is_shared) count_path(Path::encode_groups);
    share(is_shared ? threads : 1, 0, i64(groups.size()) - 1, [&](i64 group, int thread) {
      for (std::size_t position = groups[std::size_t(group)]; position < groups[std::size_t(group) + 1]; ++position)
        write(all.subspan(std::size_t(thread), 1), position);
    });
    groups.clear();
    work = group_work = 0;
  };
  for (std::size_t position = 0; position < numbers.size(); ++position) {
    const i64 factor_work = threads == 1 ? 0 : work_of(factors, numbers[position]);
    if (factor_work >= kSharedCells) {
      write_groups(position);
      count_path(Path::encode_large);
      write(all, position);
      continue;
    }
    if (groups.empty() || group_work >= kGroupCells) groups.push_back(position), group_work = 0;
    work += factor_work;
    group_work += factor_work;
  }
  write_groups(numbers.size());
  Written written;
  for (const Box& whole : wholes) {
    written.ranges.push_back(whole.ends.high);
    written.ranges.push_back(whole.ends.high > 0 ? whole.ends.low : 0);
    written.exponents.push_back(whole.exponent);
    written.exact.push_back(whole.exact);
  }
  return written;
}

}  // namespace elimina::tables
