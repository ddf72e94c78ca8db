// A model's tables with the Python arrays that they lie in.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "tables/encode.hpp"

struct TableList {
  elimina::tables::Tables tables;
  std::vector<nanobind::object> arrays;  // Python arrays that hold the numbers of each table
};

inline elimina::tables::Sense sense_of(const std::string& name) {
  if (name == "probability") return elimina::tables::Sense::probability;
  return name == "min-cost" ? elimina::tables::Sense::min_cost : elimina::tables::Sense::max_cost;
}

inline elimina::tables::Rule rule_of(const std::string& name) {
#define ELIMINA_MATCH(rule) \
  if (name == #rule) return elimina::tables::Rule::rule;
  ELIMINA_ENCODINGS(ELIMINA_MATCH)
#undef ELIMINA_MATCH
  throw nanobind::value_error("unknown rule of encoding");
}
