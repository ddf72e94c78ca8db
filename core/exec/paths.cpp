#include "exec/paths.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <stdexcept>
#include <string>

namespace elimina {
namespace {

constexpr std::string_view kPathNames[] = {
#define ELIMINA_PATH(name, text) text,
    ELIMINA_PATHS(ELIMINA_PATH)
#undef ELIMINA_PATH
};

std::atomic<bool> counting{false};
std::array<std::atomic<std::int64_t>, std::size(kPathNames)> counts{};

}  // namespace

void count_paths(bool on) {
  for (auto& count : counts) count = 0;
  counting = on;
}

bool are_paths_counted() { return counting.load(std::memory_order_relaxed); }

void count_path(Path path) {
  if (are_paths_counted()) counts[std::size_t(path)].fetch_add(1, std::memory_order_relaxed);
}

void count_path(std::string_view name) {
  if (!are_paths_counted()) return;
  const auto* entry = std::ranges::find(kPathNames, name);
  if (entry == std::end(kPathNames))
    throw std::out_of_range("unknown executor path '" + std::string(name) + "': add it to core/exec/paths.hpp");
  count_path(Path(entry - kPathNames));
}

int path_total() { return int(std::size(kPathNames)); }
std::string_view path_name(int number) { return kPathNames[std::size_t(number)]; }
std::int64_t path_count(int number) { return counts[std::size_t(number)].load(std::memory_order_relaxed); }

}  // namespace elimina
