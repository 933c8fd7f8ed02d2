#pragma once

namespace shardtool::python {

/// Raises every shardtool::Error as the class of shardtool._errors for its exit status.
void translate_errors();

}  // namespace shardtool::python
