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
    const auto variables_of_agent = network_.variables_of_agents();
    for (int agent = 0; agent < int(variables_of_agent.size()); ++agent) {
      turn(agent, [&] {
        for (const int v : variables_of_agent[agent]) {
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
  struct Delivery {
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
      const Delivery packet = inside_.front();
      inside_.pop_front();
      receive(packet.source, packet.target, packet.body);
    }
    network_.clocks[agent] += now() - begun;
    for (const Delivery& packet : outside_) {
      ++messages_[int(packet.body.kind)];
      network_.send(packet.source, packet.target, packet.body);
    }
  }

  void receive(int source, int target, const Body& body) {
    sent_.clear();
    traversals_[target]->receive(source, body, sent_);
    sort_out(target);
  }

  void sort_out(int source) {
    for (const Sent& message : sent_) {
      const Delivery packet{source, message.target, message.body};
      if (owners_[message.target] == owners_[source]) inside_.push_back(packet);
      else outside_.push_back(packet);
    }
  }

  std::span<Traversal* const> traversals_;
  std::span<const int> owners_;
  Network<Body> network_;
  std::array<i64, kKinds> messages_{};
  std::vector<Sent> sent_;
  std::vector<Delivery> outside_;
  std::deque<Delivery> inside_;
};

}  // namespace

Agreement agree(std::span<Traversal* const> traversals, std::span<const int> owners, int agents,
                const Delivery& delivery, const std::function<void()>& poll) {
  return Run(traversals, owners, agents, delivery)(poll);
}

}  // namespace elimina::dcop
