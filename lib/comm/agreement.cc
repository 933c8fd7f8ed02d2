#include "lib/comm/agreement.h"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <optional>
#include <string>

#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/comm/packed_error.h"

namespace shardtool::comm {
namespace {

constexpr const char* kRefusedMemory = "the system refused memory";

/// Packed error of `part`, or an empty string.
std::string failure_of(const std::function<void()>& part) {
  try {
    part();
  } catch (const Error& error) {
    return pack(error);
  } catch (const std::bad_alloc&) {
    return pack(Error(ErrorCode::kLimit, kRefusedMemory));
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

void tell_interruption(Communicator& comm, const std::function<void()>& step) {
  try {
    check_interrupted();
    step();
  } catch (Error& error) {
    if (error.code() == ErrorCode::kInterrupted) comm.abort(error);
    throw;
  }
}

void run_or_abort(Communicator& comm, const std::function<void()>& body) {
  const auto abort = [&comm](ErrorCode code, const char* reason) {
    Error error(code, reason);
    comm.abort(error);
  };
  try {
    body();
  } catch (Error& error) {
    comm.abort(error);
    throw;
  } catch (const std::bad_alloc&) {
    abort(ErrorCode::kLimit, kRefusedMemory);
    throw;
  } catch (const std::exception& error) {
    abort(ErrorCode::kInternal, error.what());
    throw;
  } catch (...) {
    abort(ErrorCode::kInternal, "an unknown exception");
    throw;
  }
}

}  // namespace shardtool::comm
