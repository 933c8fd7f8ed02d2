#pragma once

#include <nanobind/nanobind.h>

namespace shardtool::python {

/// Checkpoints, ranks, tensors' layouts and slices.
void bind_checkpoint(nanobind::module_& module);
/// The commands; each returns the document that `--json` prints.
void bind_commands(nanobind::module_& module);
/// The plan with its transfers.
void bind_plan(nanobind::module_& module);

}  // namespace shardtool::python
