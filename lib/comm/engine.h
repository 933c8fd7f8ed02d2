#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/comm/communicator.h"
#include "lib/comm/engine_choice.h"

namespace shardtool::comm {

/// Describes the engine on this machine: its libraries and their versions. Opens the libraries, and
/// does not start them. Throws kEngineMissing or, for tcp, kPeerLost, with the missing part. Uses
/// only the libraries' files of the choice.
std::string found(const EngineChoice& choice);

/// Connects the processes of the launch; a single process without one. Every process of the launch
/// calls this. Throws kEngineMissing when the engine cannot be used here, kPeerLost when not all
/// come in time; the error that a process threw in before_meeting(); kUsage when the launcher and
/// the engine disagree about the processes, when the processes have different options, or for
/// embedded, whose ranks are no processes.
std::unique_ptr<Communicator> connect(const EngineChoice& choice);

/// Runs what a process does before it connects, and throws its error. The processes of a launch
/// hear of the error first: this one meets the others, and all throw the error of the lowest one
/// that failed, here or in connect().
void before_meeting(const EngineChoice& choice, const std::function<void()>& work);

/// Runs `body` as each of `ranks` ranks: those of this process. An error of one rank ends
/// the run for all and is thrown; kUsage when the launcher started another number of processes.
void run_ranks(const EngineChoice& choice, int ranks,
               const std::function<void(Communicator&)>& body);

}  // namespace shardtool::comm
