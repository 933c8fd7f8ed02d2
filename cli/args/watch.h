#pragma once

#include "cli/print/progress.h"
#include "cli/session.h"
#include "cli/signals.h"
#include "lib/api/transform.h"

namespace shardtool::cli {

/// Progress on standard error and interruption by signals, shared by the verbs that move data.
/// Works on any options with `on_progress` and `cancel`, which must not outlive it.
class Watch {
 public:
  /// `verb` describes the run in progress lines.
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
