#pragma once

#include <memory>

#include "cli/command.h"
#include "cli/session.h"

namespace shardtool::cli {

/// All commands and the storage of their arguments.
class Commands {
 public:
  Commands();
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  const GlobalArgs& global() const { return global_; }
  const CommandTree& tree() const { return tree_; }

 private:
  struct Arguments;

  GlobalArgs global_;
  std::unique_ptr<Arguments> arguments_;
  CommandTree tree_;
};

}  // namespace shardtool::cli
