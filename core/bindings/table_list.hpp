// A model's tables with the Python arrays that they lie in.
#pragma once
#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "tables/encode.hpp"

struct TableList {
  elimina::tables::Tables tables;
  std::vector<nanobind::object> arrays;  // each table's numbers
};

inline elimina::tables::Sense sense_of(const std::string& name) {
  if (name == "probability") return elimina::tables::Sense::probability;
  return name == "min-cost" ? elimina::tables::Sense::min_cost : elimina::tables::Sense::max_cost;
}

inline elimina::tables::Rule rule_of(const std::string& name) {
  if (name == "support") return elimina::tables::Rule::support;
  if (name == "distances") return elimina::tables::Rule::distances;
  if (name == "logs") return elimina::tables::Rule::logs;
  if (name == "products") return elimina::tables::Rule::products;
  throw nanobind::value_error("unknown rule of encoding");
}
