#include "dcop/agreement.hpp"

#include <chrono>
#include <deque>
#include <queue>
#include <random>

namespace elimina::dcop {
namespace {

constexpr i64 kPatience = 4096;  // messages between two polls

struct Packet {
  double time;
  i64 number;
  int source, target;
  Body body;
};

struct Later {
  bool operator()(const Packet& one, const Packet& other) const {
    return one.time != other.time ? one.time > other.time : one.number > other.number;
  }
};

// Messages on their way.
class Queue {
 public:
  Queue(Order order, std::mt19937_64& random) : order_(order), random_(random) {}

  void put(Packet packet) {
    packet.number = count_++;
    if (order_ == Order::time) first_.push(packet);
    else any_.push_back(packet);
  }

  bool take(Packet& packet) {
    if (order_ == Order::time) {
      if (first_.empty()) return false;
      packet = first_.top();
      first_.pop();
      return true;
    }
    if (any_.empty()) return false;
    if (order_ == Order::random) std::swap(any_.front(), any_[random_() % any_.size()]);
    packet = any_.front();
    any_.pop_front();
    return true;
  }

 private:
  Order order_;
  std::mt19937_64& random_;
  std::priority_queue<Packet, std::vector<Packet>, Later> first_;
  std::deque<Packet> any_;
  i64 count_ = 0;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Run {
 public:
  Run(std::span<Traversal* const> traversals, std::span<const int> owners, int agents, const Delivery& delivery)
      : traversals_(traversals), owners_(owners), delivery_(delivery), random_(delivery.seed), queue_(delivery.order, random_) {
    made_.clocks.assign(std::size_t(agents), 0.0);
  }

  Agreement operator()(const std::function<void()>& poll) {
    std::vector<std::vector<int>> own(made_.clocks.size());
    for (int v = 0; v < int(traversals_.size()); ++v) own[owners_[v]].push_back(v);
    for (int agent = 0; agent < int(own.size()); ++agent) {
      turn(agent, 0.0, [&] {
        for (const int v : own[agent]) {
          sent_.clear();
          traversals_[v]->start(sent_);
          sort_out(v);
        }
      });
    }
    Packet packet;
    for (i64 count = 1; queue_.take(packet); ++count) {
      if (count % kPatience == 0) poll();
      turn(owners_[packet.target], packet.time, [&] { receive(packet); });
    }
    return std::move(made_);
  }

 private:
  // Let an agent act at a time, and its variables that the others tell something; post what is for other agents.
  template <class Act>
  void turn(int agent, double time, Act act) {
    double& clock = made_.clocks[agent];
    clock = std::max(clock, time);
    const double begun = now();
    outside_.clear();
    act();
    while (!inside_.empty()) {
      const Packet packet = inside_.front();
      inside_.pop_front();
      receive(packet);
    }
    clock += now() - begun;
    for (Packet& packet : outside_) {
      ++made_.messages[int(packet.body.kind)];
      packet.time = clock + delivery_.delay + (delivery_.jitter > 0 ? std::uniform_real_distribution<>(0, delivery_.jitter)(random_) : 0.0);
      queue_.put(packet);
    }
  }

  void receive(const Packet& packet) {
    sent_.clear();
    traversals_[packet.target]->receive(packet.source, packet.body, sent_);
    sort_out(packet.target);
  }

  void sort_out(int source) {
    for (const Sent& one : sent_) {
      const Packet packet{0.0, 0, source, one.target, one.body};
      if (owners_[one.target] == owners_[source]) inside_.push_back(packet);
      else outside_.push_back(packet);
    }
  }

  std::span<Traversal* const> traversals_;
  std::span<const int> owners_;
  const Delivery& delivery_;
  std::mt19937_64 random_;
  Queue queue_;
  Agreement made_;
  std::vector<Sent> sent_;
  std::vector<Packet> outside_;
  std::deque<Packet> inside_;
};

}  // namespace

Agreement agree(std::span<Traversal* const> traversals, std::span<const int> owners, int agents, const Delivery& delivery, const std::function<void()>& poll) {
  return Run(traversals, owners, agents, delivery)(poll);
}

}  // namespace elimina::dcop
