#pragma once

#include <optional>
#include <string>

#include "cli/print/color.h"
#include "lib/base/error.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Formats an error for people:
///
///     error[E0203]: 30 heads cannot be split over mesh axis 'tp' (size 4)
///       --> mapping.json:7:17  /axes/heads
///        |
///      7 |     "heads":    {"mesh": "tp"},
///        |                 ^
///        = tensor: model.layers.0.self_attn.q_proj.weight
///        = config: num_attention_heads = 30
///        help: use a tp that divides 30
///
/// The source line is shown if the file can be read. Control characters are escaped, since messages
/// quote names from files. `verbose` adds the explanation of the error id.
std::string error_text(const Error& error, const Style& style, bool verbose);

/// Writes the fields of the "error" object. `status` is the exit status of the process where that
/// is not the error's own: after a signal, and under --detailed-exitcode.
void write_error(JsonWriter& json, const Error& error, std::optional<int> status = {});

}  // namespace shardtool::cli
