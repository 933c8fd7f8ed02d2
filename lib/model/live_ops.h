#pragma once

#include "lib/model/bind.h"

namespace shardtool::model {

/// Removes the ops of a bound model on which no result depends, because nothing reads what they
/// make. The law B3 holds afterwards; `unread` stays as it was.
void remove_dead_ops(Model& model);

}  // namespace shardtool::model
