#include "batch.hpp"

#include <algorithm>
#include <bit>
#include <chrono>

#include "cp/propagators/matching.hpp"

namespace elimina::cp {

namespace {

using Memory = FilterDevice::Memory;

// Number of rounds of a search for components on the device before the CPU takes over.
constexpr std::uint32_t kRounds = 96;
// A subset needs a thread for each pair of a variable and a word. If these are at most `kAlone` threads, it runs in one
// block, with its state in shared memory. A larger subset runs in several blocks of `kPerBlock` threads.
constexpr std::size_t kAlone = 1024, kPerBlock = 512;

// Returns the largest number of values that the device may remove from a subset; the CPU filters subsets that lose
// more.
std::size_t most_losses(std::size_t count, std::size_t words) {
  return std::min(count * words, std::max<std::size_t>(4 * count, 4096));
}

}  // namespace

bool DeviceBatch::can_filter(const Domains& d, const Matching& matching) {
  for (const View x : matching.views())
    if (x.scale != 1 || !d.has_row(x.var)) return false;
  return matching.side() != Side::cpu;
}

DeviceBatch::DeviceBatch(Engine& engine, std::unique_ptr<FilterDevice> device, bool measures)
    : domains_(engine.domains()), device_(std::move(device)), measures_(measures) {
  changes_.state.assign(static_cast<std::size_t>(domains_.count()), Changes::kOthers);
  engine.each_propagator([&](Propagator& p) {
    auto* const matching = dynamic_cast<Matching*>(&p);
    if (matching && can_filter(domains_, *matching)) enlist(domains_, *matching);
  });
  changes_.max_words = std::min<std::size_t>(domains_.rows().size() / 4 + 1024, std::size_t{1} << 18);
}

DeviceBatch::~DeviceBatch() { domains_.tell_changes(nullptr); }

void DeviceBatch::enlist(const Domains& d, Matching& matching) {
  matching.filter_by(*this, members_.size());
  matchings_.push_back(&matching);
  for (const View x : matching.views()) {
    const Value first = matching.base() - x.offset - d.row_base(x.var);
    members_.push_back({static_cast<std::uint32_t>(x.var), static_cast<std::uint32_t>(d.row_place(x.var)),
                        static_cast<std::int32_t>(first)});
    changes_.state[static_cast<std::size_t>(x.var)] = Changes::kUnseen;
  }
}

template <class T>
void DeviceBatch::reserve(Store<T>& store, std::size_t count, Memory memory) {
  if (store.size() >= count) return;
  const std::size_t bytes = std::max(count, store.size() * 3 / 2) * sizeof(T);
  store.release();
  store.owner = device_.get();
  store.piece = device_->allocate(memory, bytes);
}

std::size_t DeviceBatch::variables(Matching& matching) {
  std::size_t count = 0;
  for (const Matching::Subset& subset : matching.subsets()) count += subset.size();
  return count;
}

// Starts or stops updating the device's copies. Changes of domains and matchings are recorded only while the copies are
// updated.
void DeviceBatch::follow(bool is_following) {
  is_following_ = is_following;
  domains_.tell_changes(is_following ? &changes_ : nullptr);
  changes_.forget();
  for (Matching* matching : matchings_) matching->rematched.clear();
}

Outcome DeviceBatch::divide(Engine& engine, Matching& matching) {
  constexpr std::size_t kMostRematched = 16;  // largest number of new matches for each variable
  if (!measures_ || matching.side() == Side::gpu) return divide_together(engine, matching);
  if (is_following_ && (changes_.overflown || matching.rematched.size() > kMostRematched * matching.views().size()))
    follow(false);
  const std::size_t count = variables(matching);
  if (count < kWorthwhile || is_broken_) return matching.divide_here(engine);
  Choice& choice = choices_[static_cast<std::size_t>(std::bit_width(count))];
  const bool is_device = choice.is_device();
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = is_device ? divide_together(engine, matching) : matching.divide_here(engine);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // A call of the device filters the whole batch. Its time is divided among the propagators of the batch, in proportion
  // to their variables.
  choice.took(is_device ? seconds * static_cast<double>(count) / static_cast<double>(std::max(labels_count_, count))
                        : seconds);
  return outcome;
}

Outcome DeviceBatch::divide_together(Engine& engine, Matching& first) {
  jobs_.clear();
  subsets_.clear();
  lists_.clear();
  free_values_.clear();
  board_bytes_ = losses_count_ = labels_count_ = scratch_words_ = 0;
  engine.begin(first);
  add_subsets(first);
  std::vector<Matching*> others;
  engine.take_waiting(Priority::costly, [&](Propagator& p) {
    auto* const matching = dynamic_cast<Matching*>(&p);
    if (!matching || !matching->is_filtered_by(*this)) return false;
    others.push_back(matching);
    return true;
  });
  bool holds = true;
  for (Matching* const other : others) {
    if (holds) {
      holds = other->prepare(engine);
      if (holds) add_subsets(*other);
      engine.begin(*other);
    } else {
      engine.forget(*other);
    }
  }
  if (!holds) return Outcome::failed;
  return apply(engine, is_answered(engine.domains()));
}

// Filters the subsets on the device; returns false if the device fails now or has failed before. A failed device is not
// used again. If the device was requested (`measures_` is false), the failure is raised instead.
bool DeviceBatch::is_answered(const Domains& d) {
  if (is_broken_) return false;
  try {
    write_changes(d);
    run();
    return true;
  } catch (const DeviceFailed&) {
    if (!measures_) throw;
    is_broken_ = true;
    follow(false);
    return false;
  }
}

void DeviceBatch::add_subsets(Matching& matching) {
  const std::size_t first = subsets_.size(), free = free_values_.size();
  free_values_.insert(free_values_.end(), matching.free_values().begin(), matching.free_values().end());
  const bool has_free =
      std::any_of(matching.free_values().begin(), matching.free_values().end(), [](auto word) { return word != 0; });
  for (const Matching::Subset& subset : matching.subsets()) {
    const std::size_t count = subset.size(), words = matching.words();
    const bool is_all = count == matching.order().size();
    const std::size_t losses = most_losses(count, words);
    const std::size_t board = different::board_words(count, words);
    subsets_.push_back({static_cast<std::uint32_t>(matching.first_member()), static_cast<std::uint32_t>(count),
                        static_cast<std::uint32_t>(words), is_all ? -1 : static_cast<std::int32_t>(lists_.size()),
                        static_cast<std::uint32_t>(free), has_free, scratch_words_, scratch_words_ + board,
                        static_cast<std::uint32_t>(losses_count_), static_cast<std::uint32_t>(losses),
                        static_cast<std::uint32_t>(labels_count_)});
    if (!is_all)
      for (std::size_t p = subset.first; p < subset.last; ++p)
        lists_.push_back(static_cast<std::uint32_t>(matching.order()[p]));
    scratch_words_ += board + count * words;
    losses_count_ += losses;
    labels_count_ += count;
    board_bytes_ = std::max(board_bytes_, 8 * board);
  }
  jobs_.push_back({&matching, first, subsets_.size()});
}

// Allocates all memory at once: each piece of page-locked memory takes milliseconds.
void DeviceBatch::take_memory() {
  std::size_t free = 0, words = 0, losses = 0;
  for (const Matching* matching : matchings_) {
    const std::size_t count = matching->views().size();
    free += matching->words();
    words += different::board_words(count, matching->words()) + count * matching->words();
    losses += most_losses(count, matching->words());
  }
  reserve(rows_, domains_.rows().size(), Memory::device);
  reserve(bounds_, static_cast<std::size_t>(domains_.count()), Memory::device);
  reserve(member_store_, members_.size(), Memory::device);
  reserve(match_, members_.size(), Memory::device);
  reserve_for_subsets(matchings_.size(), members_.size(), free, words, losses, members_.size());
  reserve(words_, changes_.max_words, Memory::shared);
  reserve(new_bounds_, members_.size(), Memory::shared);
  reserve(matches_, 4 * members_.size(), Memory::shared);
}

void DeviceBatch::reserve_for_subsets(std::size_t subsets, std::size_t lists, std::size_t free, std::size_t scratch,
                                      std::size_t losses, std::size_t labels) {
  reserve(scratch_, scratch, Memory::device);
  reserve(subset_store_, subsets, Memory::device);
  reserve(list_store_, lists, Memory::device);
  reserve(free_store_, free, Memory::device);
  reserve(barriers_, subsets, Memory::device);
  reserve(host_subsets_, subsets, Memory::shared);
  reserve(host_lists_, lists, Memory::shared);
  reserve(host_free_, free, Memory::shared);
  reserve(losses_, losses, Memory::shared);
  reserve(labels_, labels, Memory::shared);
  reserve(answers_, subsets, Memory::shared);
  reserve(done_, 1, Memory::shared);
}

void DeviceBatch::upload_all(const Domains& d) {
  if (!is_known_) take_memory();
  reserve(rows_, d.rows().size(), Memory::device);
  if (!is_known_) device_->upload(member_store_.piece, members_.data(), members_.size() * sizeof(members_[0]));
  device_->upload(rows_.piece, d.rows().data(), std::min(rows_.size(), d.rows().size()) * sizeof(std::uint64_t));
  std::vector<different::Bounds> bounds(static_cast<std::size_t>(d.count()));
  for (int v = 0; v < d.count(); ++v)
    if (changes_.state[static_cast<std::size_t>(v)] != Changes::kOthers)
      bounds[static_cast<std::size_t>(v)] = {static_cast<std::int32_t>(d.lo(v) - d.row_base(v)),
                                             static_cast<std::int32_t>(d.hi(v) - d.row_base(v))};
  device_->upload(bounds_.piece, bounds.data(), bounds.size() * sizeof(bounds[0]));
  std::vector<std::int32_t> match;
  for (const Matching* matching : matchings_)
    for (std::size_t i = 0; i < matching->views().size(); ++i) match.push_back(matching->match(static_cast<int>(i)));
  device_->upload(match_.piece, match.data(), match.size() * sizeof(match[0]));
  is_known_ = true;
  follow(true);
}

void DeviceBatch::write_changes(const Domains& d) {
  if (!is_following_ || changes_.overflown) upload_all(d);
  std::size_t rematched = 0;
  for (const Matching* matching : matchings_) rematched += matching->rematched.size();
  reserve(words_, changes_.words.size(), Memory::shared);
  reserve(new_bounds_, changes_.variables.size(), Memory::shared);
  reserve(matches_, rematched, Memory::shared);
  std::size_t i = 0;
  constexpr std::size_t kAhead = 16;
  for (const std::uint32_t word : changes_.words) {
    if (i + kAhead < changes_.words.size()) __builtin_prefetch(d.rows().data() + changes_.words[i + kAhead]);
    words_.host()[i++] = {d.rows()[word], word};
  }
  i = 0;
  for (const int v : changes_.variables)
    new_bounds_.host()[i++] = {
        static_cast<std::uint32_t>(v),
        {static_cast<std::int32_t>(d.lo(v) - d.row_base(v)), static_cast<std::int32_t>(d.hi(v) - d.row_base(v))}};
  i = 0;
  for (Matching* matching : matchings_) {
    for (const int u : matching->rematched)
      matches_.host()[i++] = {static_cast<std::uint32_t>(matching->first_member()) + static_cast<std::uint32_t>(u),
                              matching->match(u)};
    matching->rematched.clear();
  }
  call_.word_count = static_cast<std::uint32_t>(changes_.words.size());
  call_.bounds_count = static_cast<std::uint32_t>(changes_.variables.size());
  call_.match_count = static_cast<std::uint32_t>(rematched);
  changes_.forget();
}

void DeviceBatch::run() {
  reserve_for_subsets(subsets_.size(), lists_.size(), free_values_.size(), scratch_words_, losses_count_,
                      labels_count_);
  std::copy(subsets_.begin(), subsets_.end(), host_subsets_.host());
  std::copy(lists_.begin(), lists_.end(), host_lists_.host());
  std::copy(free_values_.begin(), free_values_.end(), host_free_.host());
  std::size_t threads = 0;
  for (const different::Subset& subset : subsets_)
    threads = std::max<std::size_t>(threads, subset.count * std::min(std::bit_ceil(subset.words), 32U));
  const std::size_t max_blocks = std::max<std::size_t>(device_->blocks() / subsets_.size(), 1);
  const std::size_t blocks = threads <= kAlone ? 1 : std::min(max_blocks, (threads + kPerBlock - 1) / kPerBlock);
  call_.rows = rows_.device();
  call_.bounds = bounds_.device();
  call_.match = match_.device();
  call_.members = member_store_.device();
  call_.words = words_.device();
  call_.new_bounds = new_bounds_.device();
  call_.matches = matches_.device();
  call_.host_subsets = host_subsets_.device();
  call_.host_lists = host_lists_.device();
  call_.host_free = host_free_.device();
  call_.free = free_store_.device();
  call_.subset_count = static_cast<std::uint32_t>(subsets_.size());
  call_.list_count = static_cast<std::uint32_t>(lists_.size());
  call_.free_count = static_cast<std::uint32_t>(free_values_.size());
  call_.subsets = subset_store_.device();
  call_.lists = list_store_.device();
  call_.scratch = scratch_.device();
  call_.losses = losses_.device();
  call_.labels = labels_.device();
  call_.answers = answers_.device();
  call_.barriers = barriers_.device();
  call_.done = done_.device();
  call_.blocks = static_cast<std::uint32_t>(blocks);
  call_.rounds = kRounds;
  if (++call_.ticket == 0) ++call_.ticket;
  *done_.host() = 0;
  ++calls_;
  const auto start = std::chrono::steady_clock::now();
  device_->run(call_, board_bytes_, done_.host());
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Outcome DeviceBatch::apply(Engine& engine, bool is_answered) {
  for (const Job& job : jobs_) {
    engine.run_as(*job.matching);
    if (!apply(engine, job, is_answered)) return Outcome::failed;
    engine.settle(*job.matching, job.matching->repeats());
  }
  return Outcome::settled;
}

bool DeviceBatch::apply(Engine& engine, const Job& job, bool is_answered) {
  if (!is_answered) return job.matching->divide(engine, job.matching->subsets());
  for (std::size_t p = job.first; p < job.last; ++p) {
    const different::Subset& subset = subsets_[p];
    const different::Answer answer = answers_.host()[p];
    Matching::Subset& variables = job.matching->subsets()[p - job.first];
    if (!answer.is_complete || answer.losses > subset.losses) {
      if (!job.matching->divide(engine, {&variables, 1})) return false;
      continue;
    }
    if (!job.matching->settle(engine, variables, {labels_.host() + subset.first_label, answer.labels},
                              {losses_.host() + subset.first_loss, answer.losses}))
      return false;
  }
  return true;
}

}  // namespace elimina::cp
