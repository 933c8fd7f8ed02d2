#pragma once

#include "cli/print/progress.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "lib/base/interruption.h"
#include "lib/exec/resources.h"

namespace shardtool::cli {

/// Progress on standard error, and interruption by signals, for verbs that move data. The resources
/// must not outlive it.
class Watch {
 public:
  /// `verb` is what the progress says that the run does.
  Watch(const Session& session, exec::Resources& resources, std::string_view verb = "writing")
      : printer_(stderr_progress(session.progress(), verb)), work_(catch_interrupts()) {
    resources.on_progress = [this](const exec::Progress& progress) { printer_.update(progress); };
  }
  ~Watch() { printer_.finish(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  ProgressPrinter printer_;
  const Interruptible work_;
};

}  // namespace shardtool::cli
