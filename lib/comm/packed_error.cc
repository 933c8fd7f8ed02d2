#include "lib/comm/packed_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "lib/comm/packed.h"

namespace shardtool::comm {
namespace {

Error unpacked(const std::string& packed) {
  Unpacker fields(packed);
  const ErrorInfo* info = find_error(fields.next());
  Error error(info == nullptr ? ErrorCode::kInternal : info->code, fields.next());
  error.tensor(fields.next());
  Place place;
  place.file = fields.next();
  place.line = std::stoi(fields.next());
  place.column = std::stoi(fields.next());
  place.pointer = fields.next();
  if (!place.file.empty()) error.at(std::move(place));
  if (!fields.next().empty()) error.leaderless();
  for (size_t notes = std::stoul(fields.next()); notes > 0; --notes) {
    const std::string label = fields.next();
    error.note(label, fields.next());
  }
  while (!fields.is_at_end()) error.help(fields.next());
  return error;
}

}  // namespace

std::string pack(const Error& error) {
  Packer packer;
  packer.add(error.id()).add(error.message()).add(error.tensor_name());
  const Place place = error.place().value_or(Place{});
  packer.add(place.file).add(std::to_string(place.line)).add(std::to_string(place.column));
  packer.add(place.pointer);
  packer.add(error.is_leaderless() ? "leaderless" : "");
  packer.add(std::to_string(error.notes().size()));
  for (const auto& [label, text] : error.notes()) packer.add(label).add(text);
  for (const std::string& line : error.help_lines()) packer.add(line);
  return packer.take();
}

Error error_in(const std::string& packed) {
  try {
    return unpacked(packed);
  } catch (const std::logic_error&) {  // what packed.h and std::stoi throw
    return {ErrorCode::kPeerLost, "another process sent something that is no error"};
  }
}

void name_process(Error& error, int rank, int size) {
  const auto names_process = [](const auto& note) { return note.first == "process"; };
  if (error.code() == ErrorCode::kPeerLost || std::ranges::any_of(error.notes(), names_process)) {
    return;
  }
  error.note("process", fmt::format("{} of {}", rank, size));
}

}  // namespace shardtool::comm
