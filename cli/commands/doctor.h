#pragma once

#include <string>

#include "cli/command.h"

namespace shardtool::cli {

/// Arguments of `shardtool doctor`, as typed.
struct DoctorArgs {
  std::string folder = ".";
  std::string mpi_plugin = {};
};

/// `args` must outlive the command.
Command doctor_command(DoctorArgs& args);

}  // namespace shardtool::cli
