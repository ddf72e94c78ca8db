// Large blocks of memory whose pages are allocated on first touch. ELIMINA_PORTABLE leaves out what only some systems
// have.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

#if (defined(__linux__) || defined(__APPLE__)) && !defined(ELIMINA_PORTABLE)
#include <sys/mman.h>
#define ELIMINA_MAPS_PAGES
#endif

namespace elimina {

constexpr std::size_t kHugePage = std::size_t{1} << 21;

// Asks for huge pages within a block; without them, random accesses to a table miss the TLB.
inline void prefer_huge_pages([[maybe_unused]] void* at, [[maybe_unused]] std::size_t bytes) {
#if defined(ELIMINA_MAPS_PAGES) && defined(MADV_HUGEPAGE)
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const auto from = (begin + kHugePage - 1) / kHugePage * kHugePage, to = (begin + bytes) / kHugePage * kHugePage;
  if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

// Returns a new block of `bytes` bytes, at least kHugePage; nullptr if the system has no room.
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

// Frees the pages after the first `kept_bytes` bytes of a block, where the system can; returns the number of remaining
// bytes.
inline std::size_t cut_pages([[maybe_unused]] void* start, std::size_t bytes, [[maybe_unused]] std::size_t kept_bytes) {
#if defined(ELIMINA_MAPS_PAGES)
  munmap(static_cast<char*>(start) + kept_bytes, bytes - kept_bytes);
  return kept_bytes;
#else
  return bytes;
#endif
}

// The C library returns freed blocks of at least this many bytes to the system at once.
constexpr std::size_t kNeverKept = std::size_t{1} << 25;

// Allocates the elements of a vector: large vectors are blocks of `map_pages`, and new elements are uninitialised.
template <class T>
struct Pages : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Pages<U>;
  };

  T* allocate(std::size_t count) {
    if (count < kNeverKept / sizeof(T)) return std::allocator<T>::allocate(count);
    if (void* at = count > SIZE_MAX / sizeof(T) ? nullptr : map_pages(count * sizeof(T))) return static_cast<T*>(at);
    throw std::bad_alloc();
  }

  void deallocate(T* start, std::size_t count) {
    if (count < kNeverKept / sizeof(T)) std::allocator<T>::deallocate(start, count);
    else unmap_pages(start, count * sizeof(T));
  }

  template <class U, class... Given>
  void construct(U* address, Given&&... arguments) {
    if constexpr (sizeof...(Given) == 0) ::new (static_cast<void*>(address)) U;
    else ::new (static_cast<void*>(address)) U(std::forward<Given>(arguments)...);
  }
};

}  // namespace elimina
