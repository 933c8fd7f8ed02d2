#include "lib/comm/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "lib/base/dynamic_library.h"
#include "lib/base/error.h"
#include "lib/base/interruption.h"
#include "lib/comm/mpi/mpi_link.h"

namespace shardtool::comm {
namespace {

using Functions = shardtool_mpi_functions;

constexpr const char* kPlugin = "the MPI plugin";

/// Number of polls before sleeping: processes may share a core.
constexpr int kEagerLooks = 200;
constexpr std::chrono::microseconds kRest{50};

/// Set when a run was aborted: MPI has to end it.
struct Aborted {
  const Functions* mpi = nullptr;
  bool is_own = false;  ///< this process aborted, so its exit status is reported
} aborted;

void abort_at_exit(int status, void*) {
  if (aborted.mpi == nullptr) return;
  std::this_thread::sleep_for(aborted.is_own ? kLastWords : 3 * kLastWords);
  aborted.mpi->abort(status == 0 ? error_info(ErrorCode::kPeerLost).exit_status : status);
}

class MpiCommunicator final : public MessageCommunicator {
 public:
  MpiCommunicator(const Functions& mpi, int rank, int size)
      : MessageCommunicator(rank, size, links_over(mpi, rank, size)), mpi_(mpi) {}

  ~MpiCommunicator() override {
    end_answers();
    if (everybody_ended()) {
      mpi_.finalize();
    } else {
      aborted = {&mpi_, is_own_abort_};
    }
  }

 protected:
  void do_abort(const Error& error) noexcept override {
    {
      const std::lock_guard lock(mutex());
      is_own_abort_ = is_own_abort_ || !was_aborted();
    }
    MessageCommunicator::do_abort(error);
  }

  void pause(int looks) override {
    if (looks < kEagerLooks) return std::this_thread::yield();
    std::this_thread::sleep_for(kRest);
  }

 private:
  static Links links_over(const Functions& mpi, int rank, int size) {
    Links links;
    for (int peer = 0; peer < size; ++peer) {
      links.push_back(peer == rank ? nullptr : std::make_unique<MpiLink>(mpi, peer));
    }
    return links;
  }

  /// Drains all messages before MPI is finalized: every process announces its end and waits for the
  /// others to do so, which may still compute. mpirun ends the run when a process dies.
  bool everybody_ended() {
    try {
      for (const auto& link : links()) {
        if (link && !was_aborted()) link->queue(FrameKind::kEnd, 0, {});
      }
      for (int looks = 0; !was_aborted(); ++looks) {
        pump();
        if (!any_left()) return true;
        check_interrupted();
        pause(looks);
      }
    } catch (const Error&) {
      // MPI failed, or the user waits no longer.
    }
    return false;
  }

  bool any_left() const {
    return std::ranges::any_of(links(), [](const auto& link) {
      return link && (link->is_sending() || !link->has_ended());
    });
  }

  const Functions& mpi_;
  bool is_own_abort_ = false;
};

/// Functions of the plugin. Throws kEngineMissing for another version.
const Functions& functions_of(const DynamicLibrary& library) {
  const auto functions =
      library.function<shardtool_mpi_plugin_function>(SHARDTOOL_MPI_PLUGIN_SYMBOL);
  const Functions& mpi = *functions();
  if (mpi.version == SHARDTOOL_MPI_PLUGIN_VERSION) return mpi;
  throw engine_missing(fmt::format("the MPI plugin {} has version {}, expected {}", library.name(),
                                   mpi.version, SHARDTOOL_MPI_PLUGIN_VERSION));
}

}  // namespace

std::vector<std::string> mpi_plugin_places(const std::string& given) {
  if (!given.empty()) return {given};
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return {SHARDTOOL_MPI_PLUGIN_NAME};
  const auto folder = program.parent_path();
  const auto plugins = folder / SHARDTOOL_PLUGINS_FROM_PROGRAM;
  return {folder / SHARDTOOL_MPI_PLUGIN_NAME,
          (plugins / SHARDTOOL_MPI_PLUGIN_NAME).lexically_normal()};
}

std::string found_mpi(const std::vector<std::string>& plugins) {
  const DynamicLibrary library(kPlugin, plugins);
  std::array<char, 1024> text{};
  functions_of(library).name(text.data(), text.size());
  // MPI's build options follow the version.
  const std::string_view words(text.data());
  return fmt::format("{} through {}", words.substr(0, words.find_first_of(",\n")), library.name());
}

std::unique_ptr<Communicator> open_mpi(const std::vector<std::string>& plugins) {
  const DynamicLibrary library(kPlugin, plugins);
  const Functions& mpi = functions_of(library);
  int rank = 0;
  int size = 0;
  std::array<char, 1024> text{};
  if (mpi.begin(&rank, &size, text.data(), text.size()) != 0) {
    throw engine_missing(fmt::format("MPI does not begin: {}", text.data()));
  }
  ::on_exit(abort_at_exit, nullptr);
  return std::make_unique<MpiCommunicator>(mpi, rank, size);
}

}  // namespace shardtool::comm
