#include "document.hpp"

#include <cctype>

namespace elimina::cp::flatzinc {

namespace {

std::uint64_t hash_of(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h ^ (h >> 29);
}

bool goes_on_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

std::size_t Names::position(std::string_view name, std::uint64_t hash) const {
  std::size_t i = hash & (slots_.size() - 1);
  while (slots_[i].name.data() && (slots_[i].hash != hash || slots_[i].name != name)) i = (i + 1) & (slots_.size() - 1);
  return i;
}

const Term* Names::find(std::string_view name) const {
  const Slot& slot = slots_[position(name, hash_of(name))];
  return slot.name.data() ? &slot.term : nullptr;
}

bool Names::add(std::string_view name, const Term& term) {
  if (2 * used_ >= slots_.size()) grow();
  const std::uint64_t hash = hash_of(name);
  Slot& slot = slots_[position(name, hash)];
  if (slot.name.data()) return false;
  slot = {name, term, hash};
  ++used_;
  return true;
}

void Names::grow() {
  std::vector<Slot> old(4 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.name.data()) slots_[position(slot.name, slot.hash)] = slot;
}

void Document::reserve(std::size_t bytes) {
  terms.reserve(bytes / 8);
  texts.reserve(bytes / 32);
  variables.reserve(bytes / 64);
  constraints.reserve(bytes / 64);
}

Term Document::text_term(Kind kind, std::string_view text) {
  texts.push_back(text);
  return {kind, 0, static_cast<std::int64_t>(texts.size() - 1)};
}

Term Document::numbers_term(Kind kind, std::span<const std::int64_t> values) {
  const Term result{kind, static_cast<std::uint32_t>(values.size()), static_cast<std::int64_t>(numbers.size())};
  numbers.insert(numbers.end(), values.begin(), values.end());
  return result;
}

Term Document::array_term(std::span<const Term> elements) {
  const List all = list(elements);
  return {Kind::array, all.count, all.first};
}

Term Document::call_term(std::string_view name, std::span<const Term> arguments) {
  terms.push_back(text_term(Kind::atom, name));
  const List all = list(arguments);
  return {Kind::call, all.count, all.first};
}

List Document::list(std::span<const Term> elements) {
  const List result{static_cast<std::uint32_t>(terms.size()), static_cast<std::uint32_t>(elements.size())};
  terms.insert(terms.end(), elements.begin(), elements.end());
  return result;
}

void Document::declare_variable(const Variable& variable) {
  const Term term{Kind::variable, 0, static_cast<std::int64_t>(variables.size())};
  variables.push_back(variable);
  declare(variable.name, term, variable.annotations, variable.position);
}

void Document::declare(std::string_view name, const Term& value, List annotations, Position position) {
  if (!names.add(name, value)) throw Malformed(position, "a second declaration of " + std::string(name));
  for (const Term& annotation : items(annotations)) {
    if (annotation.kind == Kind::atom && text(annotation) == "output_var") outputs.push_back({name, value, {}});
    if (annotation.kind != Kind::call || text(annotation) != "output_array") continue;
    const auto arguments = items(annotation);
    bool is_array = value.kind == Kind::array && arguments.size() == 1 && arguments[0].kind == Kind::array;
    if (is_array)
      for (const Term& set : items(arguments[0])) is_array &= fits(set, Type::set) && set.kind != Kind::variable;
    if (!is_array)
      throw Malformed(position,
                      "output_array of " + std::string(name) + ": expected an array of index sets, of an array");
    outputs.push_back({name, value, arguments[0]});
  }
}

std::string token_at(std::string_view text, std::size_t start) {
  if (start >= text.size()) return "the end of the file";
  std::size_t end = start;
  while (end < text.size() && end - start < 40 && goes_on_in_word(text[end])) ++end;
  if (end > start) return "'" + std::string(text.substr(start, end - start)) + "'";
  const auto byte = static_cast<unsigned char>(text[start]);
  if (std::isprint(byte)) return std::string("'") + text[start] + "'";
  return "byte " + std::to_string(byte);
}

}  // namespace elimina::cp::flatzinc
