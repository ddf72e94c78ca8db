// Large blocks of memory whose pages exist only once they are touched. ELIMINA_PORTABLE leaves out what only some systems have.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#if (defined(__linux__) || defined(__APPLE__)) && !defined(ELIMINA_PORTABLE)
#include <sys/mman.h>
#define ELIMINA_MAPS_PAGES
#endif

namespace elimina {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

// Asks for huge pages where a block spans whole ones; without them a table's random accesses miss the TLB.
inline void prefer_huge_pages([[maybe_unused]] void* at, [[maybe_unused]] std::size_t bytes) {
#if defined(ELIMINA_MAPS_PAGES) && defined(MADV_HUGEPAGE)
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const auto from = (begin + kHugePage - 1) / kHugePage * kHugePage, to = (begin + bytes) / kHugePage * kHugePage;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

// A block of at least kHugePage bytes, or nullptr.
inline void* map_pages(std::size_t bytes) {
#if defined(ELIMINA_MAPS_PAGES)
#if !defined(MAP_NORESERVE)
#define MAP_NORESERVE 0
#endif
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  prefer_huge_pages(at, bytes);
  return at;
#else
  return std::malloc(bytes);
#endif
}

inline void unmap_pages(void* at, [[maybe_unused]] std::size_t bytes) {
#if defined(ELIMINA_MAPS_PAGES)
  munmap(at, bytes);
#else
  std::free(at);
#endif
}

// Gives back the pages of a block from so many bytes, whole huge pages, on; returns how many bytes are left.
inline std::size_t cut_pages([[maybe_unused]] void* at, std::size_t bytes, [[maybe_unused]] std::size_t kept) {
#if defined(ELIMINA_MAPS_PAGES)
  munmap(static_cast<char*>(at) + kept, bytes - kept);
  return kept;
#else
  return bytes;
#endif
}

}  // namespace elimina
