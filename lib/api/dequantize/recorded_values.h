#pragma once

#include <string>

#include "lib/api/transfer/sources/logical_checkpoint.h"

namespace shardtool::api {

/// Returns the number of tensors that the output's manifest says were cast or unpacked from tensors
/// that the source has.
i64 recorded_changes(const LogicalCheckpoint& source, const LogicalCheckpoint& output);

/// Shows a source as its output's manifest records it: weights are unpacked and floats are cast to
/// the recorded types (LogicalTensor::unpacked, LogicalTensor::cast_from). Tensors without a record
/// stay. Throws the errors of dequantize.
void show_as_recorded(LogicalCheckpoint& source, const LogicalCheckpoint& output);

/// Recorded casts of an output's tensor from the source's type on, "BF16 -> F16 -> F32", if one
/// before the last can have rounded: show_as_recorded does not repeat those. Empty otherwise.
std::string rounded_before(const LogicalTensor& source, const LogicalTensor& output);

/// Note on all tensors of which rounded_before says something; empty if there are none.
std::string note_on_rounded(const LogicalCheckpoint& source, const LogicalCheckpoint& output);

/// Describes how the recorded unpacking of an output's tensor differs from that of the source's;
/// empty if it does not, or if there is none.
std::string unpacking_change(const LogicalTensor& source, const LogicalTensor& output);

}  // namespace shardtool::api
