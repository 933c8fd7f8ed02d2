#pragma once

#include "cli/print/progress.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "lib/api/transform.h"

namespace shardtool::cli {

/// What the verbs that move data share: progress on standard error and interruption by signals.
/// Works on any options that have `on_progress` and `cancel`; they must not outlive it.
class Watch {
 public:
  /// `verb` is what the progress says that the run does.
  template <class Options>
  Watch(const Session& session, Options& options, std::string_view verb = "writing")
      : printer_(stderr_progress(session.progress(), verb)) {
    options.on_progress = [this](const api::Progress& progress) { printer_.update(progress); };
    options.cancel = catch_interrupts();
  }
  ~Watch() { printer_.finish(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  ProgressPrinter printer_;
};

}  // namespace shardtool::cli
