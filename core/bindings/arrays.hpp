// Arrays from and to Python.
#pragma once
#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

template <class T>
using Words = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
template <class T, int Axes = 1>
using Array = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<Axes>>;

template <class T>
std::span<T> span_of(const Words<T>& words) {
  return {words.data(), words.size()};
}

template <class T>
std::vector<T> list_of(const Words<const T>& words) {
  return {words.data(), words.data() + words.size()};
}

// Returns an array that owns the items.
template <class T, std::size_t Axes>
Array<T, int(Axes)> array_of(std::vector<T> items, const std::array<std::size_t, Axes>& shape) {
  auto* vector = new std::vector<T>(std::move(items));
  nanobind::capsule owner(vector, [](void* data) noexcept { delete static_cast<std::vector<T>*>(data); });
  return Array<T, int(Axes)>(vector->data(), Axes, shape.data(), owner);
}

template <class T>
Array<T> array_of(std::vector<T> items) {
  const std::array<std::size_t, 1> shape{items.size()};
  return array_of(std::move(items), shape);
}
