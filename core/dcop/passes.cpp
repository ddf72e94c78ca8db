#include "dcop/passes.hpp"

#include <algorithm>
#include <deque>

namespace elimina::dcop {
namespace {

struct Step {
  bool is_value;
  i64 operations;  // operations of the sender so far
};

class Passes {
 public:
  using Packet = Network<Step>::Packet;

  Passes(std::span<Traversal* const> traversals, std::span<const int> owners, std::vector<double> clocks,
         std::span<const i64> operations, double pace, const Delivery& delivery)
      : traversals_(traversals), owners_(owners), work_(operations), pace_(pace), operations_(clocks.size()),
        network_(owners, std::move(clocks), delivery) {
    for (const Traversal* traversal : traversals) silent_.push_back(traversal->children().size());
  }

  Chain operator()(const std::function<void()>& poll) {
    for (const auto& variables : network_.variables_of_agents()) {
      // Variables without children are ready at once; `act` queues all that become ready later.
      std::ranges::copy_if(variables, std::back_inserter(ready_), [&](int v) { return !silent_[v]; });
      act();
    }
    network_.run([&](const Packet& packet) { receive(packet.target, packet.body); }, poll);
    const auto latest = std::ranges::max_element(network_.clocks);
    const auto longest = std::ranges::max_element(operations_);
    return {latest == network_.clocks.end() ? 0.0 : *latest, longest == operations_.end() ? 0 : *longest};
  }

 private:
  void receive(int target, const Step& step) {
    i64& operations = operations_[owners_[target]];
    operations = std::max(operations, step.operations);
    if (step.is_value) informed_.push_back(target);
    else count_table(target);
    act();
  }

  // Counts a child's table; after the last one, the variable is ready.
  void count_table(int variable) {
    if (!--silent_[variable]) ready_.push_back(variable);
  }

  // Chooses the values of an agent's variables whose separators have values, and eliminates its ready variables.
  void act() {
    while (!ready_.empty() || !informed_.empty()) {
      if (!informed_.empty()) {
        const int source = informed_.back();
        informed_.pop_back();
        for (const int child : traversals_[source]->children()) {
          if (owners_[child] == owners_[source]) informed_.push_back(child);
          else send(source, child, true);
        }
        continue;
      }
      const int source = ready_.front(), agent = owners_[source], parent = traversals_[source]->parent();
      ready_.pop_front();
      network_.clocks[agent] += double(work_[source]) * pace_;
      operations_[agent] += work_[source];
      if (parent < 0) informed_.push_back(source);
      else if (owners_[parent] == agent) count_table(parent);
      else send(source, parent, false);
    }
  }

  void send(int source, int target, bool is_value) {
    network_.send(source, target, {is_value, operations_[owners_[source]]});
  }

  std::span<Traversal* const> traversals_;
  std::span<const int> owners_;
  std::span<const i64> work_;
  double pace_;
  std::vector<i64> operations_;  // operations of each agent
  Network<Step> network_;
  std::vector<std::size_t> silent_;  // number of children's tables that a variable waits for
  // Variables of the current agent: those to eliminate, and those with a value.
  std::deque<int> ready_;
  std::vector<int> informed_;
};

}  // namespace

Chain pass(std::span<Traversal* const> traversals, std::span<const int> owners, std::vector<double> clocks,
           std::span<const i64> operations, double pace, const Delivery& delivery, const std::function<void()>& poll) {
  return Passes(traversals, owners, std::move(clocks), operations, pace, delivery)(poll);
}

}  // namespace elimina::dcop
