// Messages of agents in one process, delivered one after another; each agent has its own clock.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "elimina/config.hpp"

namespace elimina::dcop {

enum class Order { time, fifo, random };

struct Delivery {
  Order order = Order::time;
  double delay = 0, jitter = 0;  // seconds of delay of each message, and largest random addition
  std::uint64_t seed = 0;
};

// Messages between variables of different agents.
template <class Body>
class Network {
 public:
  struct Packet {
    double time;
    i64 number;
    int source, target;
    Body body;
  };

  // `owners`: agent of each variable. `clocks`: clock of each agent, in seconds.
  Network(std::span<const int> owners, std::vector<double> clocks, const Delivery& delivery)
      : clocks(std::move(clocks)), owners_(owners), delivery_(delivery), random_(delivery.seed) {}

  // Returns the variables of each agent.
  std::vector<std::vector<int>> variables_of_agents() const {
    std::vector<std::vector<int>> variables(clocks.size());
    for (int v = 0; v < int(owners_.size()); ++v) variables[owners_[v]].push_back(v);
    return variables;
  }

  void send(int source, int target, const Body& body) {
    const double jitter = delivery_.jitter > 0 ? std::uniform_real_distribution<>(0, delivery_.jitter)(random_) : 0.0;
    const Packet packet{clocks[owners_[source]] + delivery_.delay + jitter, count_++, source, target, body};
    if (delivery_.order == Order::time) first_.push(packet);
    else any_.push_back(packet);
  }

  // Delivers messages until none remains. `receive`: processes a packet, and may send others; before the call, the
  // agent's clock is moved forward to the packet's time if it is earlier. `poll`: called now and then; an exception
  // that it throws ends the run.
  template <class Receive>
  void run(const Receive& receive, const std::function<void()>& poll) {
    for (i64 count = 1; !first_.empty() || !any_.empty(); ++count) {
      if (count % kPatience == 0) poll();
      const Packet packet = pop();
      double& clock = clocks[owners_[packet.target]];
      clock = std::max(clock, packet.time);
      receive(packet);
    }
  }

  std::vector<double> clocks;

 private:
  static constexpr i64 kPatience = 4096;  // number of messages between two polls

  struct Later {
    bool operator()(const Packet& packet, const Packet& other) const {
      return packet.time != other.time ? packet.time > other.time : packet.number > other.number;
    }
  };

  Packet pop() {
    if (delivery_.order == Order::time) {
      const Packet packet = first_.top();
      first_.pop();
      return packet;
    }
    if (delivery_.order == Order::random) std::swap(any_.front(), any_[random_() % any_.size()]);
    const Packet packet = any_.front();
    any_.pop_front();
    return packet;
  }

  std::span<const int> owners_;
  const Delivery& delivery_;
  std::mt19937_64 random_;
  // Messages that are not yet delivered: `first_` orders them by time, `any_` keeps them in the order of sending.
  std::priority_queue<Packet, std::vector<Packet>, Later> first_;
  std::deque<Packet> any_;
  i64 count_ = 0;
};

}  // namespace elimina::dcop
