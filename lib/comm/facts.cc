#include "lib/comm/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "lib/base/sha256.h"
#include "lib/base/text.h"
#include "lib/comm/communicator.h"
#include "lib/comm/packed.h"

namespace shardtool::comm {
namespace {

constexpr size_t kMostNamed = 4;

std::string pack_facts(const Facts& facts) {
  Packer packer;
  for (const auto& [name, value] : facts) packer.add(name).add(value);
  return packer.take();
}

Facts facts_in(const std::string& packed) {
  Unpacker texts(packed);
  Facts facts;
  while (!texts.is_at_end()) {
    std::string name = texts.next();
    facts.emplace_back(std::move(name), texts.next());
  }
  return facts;
}

Facts::const_iterator named(const Facts& facts, std::string_view name) {
  return std::ranges::find(facts, name, &Facts::value_type::first);
}

/// Formats as "--max-file-size 1GB", "--force", "without --force".
std::string said_of(const Facts& facts, const std::string& name) {
  const auto fact = named(facts, name);
  if (fact == facts.end()) return "without " + name;
  return fact->second.empty() ? name : name + " " + quote_for_message(fact->second);
}

/// Names of facts that are missing or have another value in one of the two, in their order.
std::vector<std::string> differing_names(const Facts& a, const Facts& b) {
  std::vector<std::string> names;
  for (const auto& [name, value] : a) {
    const auto other = named(b, name);
    if (other == b.end() || other->second != value) names.push_back(name);
  }
  for (const auto& [name, value] : b) {
    if (named(a, name) == a.end()) names.push_back(name);
  }
  return names;
}

std::string said_of(const Facts& facts, const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) {
    if (texts.size() == kMostNamed) return fmt::format("{}, ...", fmt::join(texts, ", "));
    texts.push_back(said_of(facts, name));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

void require_same(Communicator& comm, const Facts& mine, Error error) {
  if (comm.size() == 1) return;
  const std::string packed = pack_facts(mine);
  const std::vector<std::string> digests = comm.all_gather(sha256(packed));
  const auto differs = [&](const std::string& digest) { return digest != digests.front(); };
  const auto first = std::ranges::find_if(digests, differs);
  if (first == digests.end()) return;
  // Only the first differing process sends its facts: all facts of many processes would be too
  // much.
  const auto other = static_cast<int>(first - digests.begin());
  const bool is_asked = comm.rank() == 0 || comm.rank() == other;
  const std::vector<std::string> told = comm.all_gather(is_asked ? packed : std::string());
  const Facts of_first = facts_in(told.front());
  const Facts of_other = facts_in(told[static_cast<size_t>(other)]);
  const std::vector<std::string> names = differing_names(of_first, of_other);
  error.note("process 0", said_of(of_first, names));
  error.note(fmt::format("process {}", other), said_of(of_other, names));
  if (const auto count = std::ranges::count_if(digests, differs); count > 1) {
    error.note("also", fmt::format("{} of {} processes differ from process 0", count, comm.size()));
  }
  throw std::move(error);
}

}  // namespace shardtool::comm
