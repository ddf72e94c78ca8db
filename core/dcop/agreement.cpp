#include "dcop/agreement.hpp"

#include <chrono>
#include <deque>

namespace elimina::dcop {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Run {
 public:
  using Packet = Network<Body>::Packet;

  Run(std::span<Traversal* const> traversals, std::span<const int> owners, int agents, const Delivery& delivery)
      : traversals_(traversals), owners_(owners),
        network_(owners, std::vector<double>(std::size_t(agents), 0.0), delivery) {}

  Agreement operator()(const std::function<void()>& poll) {
    const auto own = network_.own();
    for (int agent = 0; agent < int(own.size()); ++agent) {
      turn(agent, [&] {
        for (const int v : own[agent]) {
          sent_.clear();
          traversals_[v]->start(sent_);
          sort_out(v);
        }
      });
    }
    network_.run(
        [&](const Packet& packet) {
          turn(owners_[packet.target], [&] { receive(packet.source, packet.target, packet.body); });
        },
        poll);
    return {messages_, std::move(network_.clocks)};
  }

 private:
  struct Told {
    int source, target;
    Body body;
  };

  // Lets an agent and its variables process a message; then sends the messages for other agents.
  template <class Act>
  void turn(int agent, Act act) {
    const double begun = now();
    outside_.clear();
    act();
    while (!inside_.empty()) {
      const Told told = inside_.front();
      inside_.pop_front();
      receive(told.source, told.target, told.body);
    }
    network_.clocks[agent] += now() - begun;
    for (const Told& told : outside_) {
      ++messages_[int(told.body.kind)];
      network_.send(told.source, told.target, told.body);
    }
  }

  void receive(int source, int target, const Body& body) {
    sent_.clear();
    traversals_[target]->receive(source, body, sent_);
    sort_out(target);
  }

  void sort_out(int source) {
    for (const Sent& one : sent_) {
      const Told told{source, one.target, one.body};
      if (owners_[one.target] == owners_[source]) inside_.push_back(told);
      else outside_.push_back(told);
    }
  }

  std::span<Traversal* const> traversals_;
  std::span<const int> owners_;
  Network<Body> network_;
  std::array<i64, kKinds> messages_{};
  std::vector<Sent> sent_;
  std::vector<Told> outside_;
  std::deque<Told> inside_;
};

}  // namespace

Agreement agree(std::span<Traversal* const> traversals, std::span<const int> owners, int agents,
                const Delivery& delivery, const std::function<void()>& poll) {
  return Run(traversals, owners, agents, delivery)(poll);
}

}  // namespace elimina::dcop
