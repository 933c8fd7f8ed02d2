#include "lib/comm/agreement.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/comm/packed.h"

namespace shardtool::comm {
namespace {

std::string pack(const Error& error) {
  Packer packer;
  packer.add(error.id()).add(error.message()).add(error.tensor_name());
  const Place place = error.place().value_or(Place{});
  packer.add(place.file).add(std::to_string(place.line)).add(std::to_string(place.column));
  packer.add(place.pointer);
  packer.add(std::to_string(error.notes().size()));
  for (const auto& [label, text] : error.notes()) packer.add(label).add(text);
  for (const std::string& line : error.help_lines()) packer.add(line);
  return packer.take();
}

Error error_in(const std::string& packed) {
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
  for (size_t notes = std::stoul(fields.next()); notes > 0; --notes) {
    const std::string label = fields.next();
    error.note(label, fields.next());
  }
  while (!fields.is_at_end()) error.help(fields.next());
  return error;
}

/// An error in one line, with its tensor and its file.
std::string told(const Error& error) {
  std::string text = error.message();
  if (!error.tensor_name().empty()) text += fmt::format(", tensor {}", error.tensor_name());
  if (error.place()) text += fmt::format(", in {}", error.place()->file);
  return text;
}

/// Packed error of `part`, or an empty string.
std::string failure_of(const std::function<void()>& part) {
  try {
    part();
  } catch (const Error& error) {
    return pack(error);
  } catch (const std::bad_alloc&) {
    return pack(Error(ErrorCode::kLimit, "the system refused memory"));
  }
  return {};
}

}  // namespace

void all_do(Communicator& comm, const std::function<void()>& part) {
  if (comm.size() == 1) return part();
  const std::string mine = failure_of(part);
  if (!mine.empty()) comm.raise_stop();
  const std::vector<std::string> all = comm.all_gather(mine);
  std::optional<Error> first;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    Error error = error_in(all[rank]);
    const bool was_stopped = error.code() == ErrorCode::kInterrupted;
    if (first && (was_stopped || first->code() != ErrorCode::kInterrupted)) continue;
    first = std::move(error.note("process", fmt::format("{} of {}", rank, all.size())));
  }
  if (first) throw *std::move(first);
}

void run_or_abort(Communicator& comm, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    comm.abort(told(error));
    throw;
  } catch (const std::exception& error) {
    comm.abort(error.what());
    throw;
  } catch (...) {
    comm.abort("an unknown exception");
    throw;
  }
}

}  // namespace shardtool::comm
