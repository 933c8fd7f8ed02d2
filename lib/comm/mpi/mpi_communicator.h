#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Where the plugin that speaks MPI may be: the one given ("" for none), or beside the program and
/// in the library folder that belongs to it.
std::vector<std::string> mpi_plugin_places(const std::string& given);

/// The MPI that the plugin would begin, with its version, and the plugin's file. Throws
/// kEngineMissing when the plugin cannot be opened or is of another version.
std::string found_mpi(const std::vector<std::string>& plugins);

/// The processes that mpirun started, over MPI; one process when it was started without. Messages
/// go through host memory. Initialises MPI, which a process can do once, and finalizes it at the
/// end, where it waits for the others; a run that was aborted ends in MPI_Abort when the process
/// exits, with its status, so that one that hangs ends too.
///
/// Throws kEngineMissing when the plugin cannot be opened, is of another version, or MPI does not
/// begin.
std::unique_ptr<Communicator> open_mpi(const std::vector<std::string>& plugins);

}  // namespace shardtool::comm
