#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lib/comm/communicator.h"

namespace shardtool::comm {

/// Candidate paths of the MPI plugin: the one given ("": not given), or the program's folder and
/// the library folder that belongs to it.
std::vector<std::string> mpi_plugin_places(const std::string& given);

/// Name and version of the MPI that the plugin would start, and the plugin's file. Throws
/// kEngineMissing when the plugin cannot be opened or is of another version.
std::string found_mpi(const std::vector<std::string>& plugins);

/// Connects the processes that mpirun started, over MPI; a single process when started without it.
/// Messages go through host memory. Initialises MPI, which a process can do once, and finalizes it
/// on destruction, where it waits for the others; after an abort it calls MPI_Abort when the
/// process exits, with its status, so that hanging processes end, too.
///
/// Throws kEngineMissing when the plugin cannot be opened, is of another version, or MPI fails to
/// start.
std::unique_ptr<Communicator> open_mpi(const std::vector<std::string>& plugins);

}  // namespace shardtool::comm
