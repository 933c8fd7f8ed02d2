#pragma once

#include <string>

#include "lib/base/error.h"

namespace shardtool::comm {

/// Packs everything that an error says into one message.
std::string pack(const Error& error);

/// Returns the error in a message of pack(); kPeerLost if the message is none.
Error error_in(const std::string& packed);

/// Adds a note that names the process in which the error arose, unless the error names one:
/// kPeerLost does so in its message.
void name_process(Error& error, int rank, int size);

}  // namespace shardtool::comm
