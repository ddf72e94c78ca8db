// Basic constraints, of which others are built. Each has a function that posts it; the caller has checked the
// arguments.
#pragma once
#include "control.hpp"

namespace elimina::cp {

// Post x = y (domain consistent unless a range is wider than `kListed`), x != y, and x <= y.
void post_equal(Engine& engine, View x, View y, Control control = {});
void post_different(Engine& engine, View x, View y, Control control = {});
void post_at_most(Engine& engine, View x, View y, Control control = {});

// Comparisons of sums of coefficients times variables. Propagation achieves bounds consistency; for equations, over the
// reals.
enum class Relation : std::uint8_t { equal, different, at_most };
void post_linear(Engine& engine, Relation relation, const Values& coefficients, const Views& xs, Value bound,
                 Control control = {});

// Adds domain propagation to an equation "sum = 0" that already propagates bounds. Adds nothing unless exactly three
// variables are open. The propagator waits while the two smaller domains have more than 4,096 pairs of values.
void post_sum_of_domains(Engine& engine, const Values& coefficients, const Views& xs);

// Posts that x has a value of a set; domain consistent.
void post_member(Engine& engine, View x, Values set, Control control = {});

// Post arithmetic constraints with the result z; propagation achieves bounds consistency. Division and remainder
// truncate towards 0, as in C.
void post_times(Engine& engine, View x, View y, View z);
void post_divide(Engine& engine, View x, View y, View z);
void post_remainder(Engine& engine, View x, View y, View z);
void post_absolute(Engine& engine, View x, View z);
void post_power(Engine& engine, View x, View y, View z);
void post_maximum(Engine& engine, const Views& xs, View z);

// Posts that tasks with presences run one after another, except for those that take no time.
void post_no_overlap(Engine& engine, const Views& starts, const Views& durations, const Views& presences);

// Post, in this order: a disjunction of literals; a Boolean b equal to their conjunction; an odd number of true
// literals.
void post_clause(Engine& engine, const Views& literals, Control control = {});
void post_all_true(Engine& engine, const Views& literals, View b);
void post_odd(Engine& engine, const Views& literals);

// Post z = table[index] with indices from 0. Domain consistent if z has few values. Otherwise, z may keep values that
// lie between two values of a table of constants, and a table of variables is filtered only by the bounds of z.
void post_element(Engine& engine, View index, const Values& table, View z);
void post_element(Engine& engine, View index, const Views& xs, View z);

enum class Consistency : std::uint8_t { value, bounds, domain };
// Processor that filters an AllDifferent if there is a device. `automatic`: the faster one by measurement.
enum class Side : std::uint8_t { automatic, cpu, gpu };
void post_all_different(Engine& engine, const Views& xs, Consistency consistency, Side side = Side::automatic);

// Post that successors (numbered from 0) form one cycle. A circuit visits all nodes; a subcircuit visits all nodes that
// are not their own successors.
void post_circuit(Engine& engine, const Views& successors, Side side = Side::automatic);
void post_subcircuit(Engine& engine, const Views& successors, Side side = Side::automatic);
// Posts the common part of circuits and subcircuits: all nodes that are not their own successors lie on one cycle.
void post_connected(Engine& engine, const Views& successors);

}  // namespace elimina::cp
