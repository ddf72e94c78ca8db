// View of cost functions in place: tables of any number type and any strides.
#pragma once
#include <cstdint>
#include <limits>
#include <vector>

namespace elimina::network {

using Var = int;
inline constexpr double infinite = std::numeric_limits<double>::infinity();

enum class Type { int16, int32, int64, float32, float64 };

// Type of the numbers that stand for costs. Numbers of at least `forbidden` count as infinite costs.
struct Numbers {
  Type type;
  double forbidden;

  // Calls a function with `cells` as a pointer to numbers of their type.
  template <class Visit>
  auto as_cells(const void* cells, Visit visit) const {
    switch (type) {
      case Type::int16: return visit(static_cast<const std::int16_t*>(cells));
      case Type::int32: return visit(static_cast<const std::int32_t*>(cells));
      case Type::int64: return visit(static_cast<const std::int64_t*>(cells));
      case Type::float32: return visit(static_cast<const float*>(cells));
      default: return visit(static_cast<const double*>(cells));
    }
  }

  template <class Cell>
  double cost(Cell cell) const {
    const double cost = static_cast<double>(cell);
    return cost < forbidden ? cost : infinite;
  }
};

struct Axis {
  Var var;
  std::int64_t stride;
};

// A sum of cost functions over variables of these sizes. The caller keeps the cells alive.
struct View {
  struct Function {
    const void* cells;
    std::vector<Axis> axes;
  };

  Numbers numbers;
  std::vector<int> sizes;
  std::vector<Function> functions;
};

}  // namespace elimina::network
