#pragma once

#include "lib/base/checked.h"

/// Times that clients see, from the times of forward passes. A forward pass is not a service: an
/// answer waits for the prompts of the other clients, too.
namespace shardtool::plan {

/// A closed loop: every client sends its next prompt when it has its answer. An open load is that
/// of so many clients as have a request under way (lib/plan/open_load.h).
struct ServiceLoad {
  i64 prompt_len = 1;   ///< tokens
  i64 answer_len = 1;   ///< tokens
  i64 concurrency = 1;  ///< clients of one replica
};

/// Times of a replica for this load.
struct PassTimes {
  double step_us = 0;     ///< one token of every running sequence
  double prompts_us = 0;  ///< a pass over the prompts that run together
  i64 together = 1;       ///< prompts of that pass: one per group of devices with own tokens
  i64 stages = 1;         ///< of a pipeline: each works on another part of the sequences
  bool has_experts = false;
};

/// Time that an engine adds to its passes. Fitted to the seen groups of tests/costs/README.md:
/// TensorRT-LLM, vLLM and SGLang together; n rows of a setup weigh as the root of n. Constants per
/// engine were better on seen groups and worse on unseen ones.
struct EngineOverheads {
  double sequence_us = 5;      ///< per step and sequence: scheduling, sampling, detokenising
  double request_us = 10'000;  ///< per request: from the client to its prompt and back
  double prompt_factor = 1.8;  ///< time of a client's own prompt, in passes over it
  double burst = 0.18;         ///< prompts that arrive together, as a fraction of all clients'
  double launch_factor = 1.2;  ///< gap between two kernels of a step, in the profile's launch times
  /// Further factor of a client's own prompt in a model with experts: a single prompt gives each
  /// expert few tokens, and the pass does not count the kernels that distribute and gather them.
  double experts_factor = 1.5;
};

/// Fraction of Service::tpot_us by which it differs from the measured time in four of five measured
/// rows, seen and unseen ones (tests/bench/README.md).
inline constexpr double kTpotBand = 0.2;

/// A replica in a steady state.
struct Service {
  i64 running = 0;          ///< sequences that have a place in the cache
  double step_us = 0;       ///< part of tpot_us: the decode step
  double host_us = 0;       ///< part of tpot_us: the engine's own time
  double others_us = 0;     ///< part of tpot_us: prompts of other clients
  double tpot_us = 0;       ///< time per output token after the first, if later_tokens > 0
  double prompt_us = 0;     ///< part of ttft_us: the own prompt
  double request_us = 0;    ///< part of ttft_us: the engine's own time
  double turn_us = 0;       ///< part of ttft_us: the step in progress, and prompts that came before
  double queue_us = 0;      ///< part of ttft_us: waiting for a place in the cache
  double ttft_us = 0;       ///< time to the first token
  double tokens_per_s = 0;  ///< of all answers
  i64 later_tokens = 0;     ///< answer_len - 1

  double answer_us() const { return ttft_us + tpot_us * static_cast<double>(later_tokens); }
};

/// Computes the service of `running` sequences, at most load.concurrency, for which `times` holds.
///
///     tpot = step + sequence running / stages + (running - 1) p / answer_len
///     ttft = request + prompt_factor prompts + step / 2 + before p (running - 1) + queue
///            (with experts prompt_factor experts_factor)
///     with p = prompts / (together stages), before = max(burst / 2, 1 / answer_len)
///
/// `times` has launch_factor already. In the time of an answer every other running client sends one
/// prompt, which takes p. These prompts delay the n tokens of the answer equally: the share of the
/// n - 1 later tokens is in tpot, that of the first one in ttft. A prompt waits for half a step on
/// average, and for half of the prompts that arrive with it.
/// Clients without a place in the cache wait as long as Little's law says. Requires positive times.
Service service_of(const ServiceLoad& load, i64 running, const PassTimes& times,
                   const EngineOverheads& overheads = {});

}  // namespace shardtool::plan
