#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/exit_code.h"
#include "cli/print/color.h"
#include "cli/print/output.h"
#include "cli/print/progress.h"
#include "lib/base/json_writer.h"

namespace shardtool::cli {

/// Global flags of all commands, as typed.
struct GlobalArgs {
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::optional<std::string> color;
  std::optional<std::string> progress;
  bool short_help = false;
  bool long_help = false;
  bool version = false;
};

/// Status of a document: kFindings if the command found something.
enum class Status { kOk, kFindings };

/// One invocation: its global flags and its outputs.
class Session {
 public:
  /// `words` are those after the program's name.
  Session(const GlobalArgs& global, const std::vector<std::string>& words);

  const std::vector<std::string>& words() const { return words_; }

  bool json() const { return global_.json; }
  bool quiet() const { return global_.quiet; }
  bool verbose() const { return global_.verbose; }
  Output& out() { return out_; }
  const Style& out_style() const { return out_style_; }
  ProgressMode progress() const { return progress_; }

  /// Prints a warning on standard error, unless quiet. JSON documents contain their own warnings.
  void warn(std::string_view text) const;

  /// Prints a document: the envelope around the fields that `fields` writes.
  template <class Fields>
  void document(std::string_view command, Status status, Fields fields) {
    auto json = open_document(command, status == Status::kOk ? "ok" : "findings");
    fields(json);
    json.end_object();
  }

 private:
  JsonWriter open_document(std::string_view command, std::string_view status);

  const GlobalArgs& global_;
  const std::vector<std::string>& words_;
  Output out_;
  Style out_style_;
  Style err_style_;
  ProgressMode progress_;
};

/// Writes {"format_version": ..., "tool": ..., "command": ..., "status": ... and leaves the object
/// open.
JsonWriter open_document(Output& out, std::string_view command, std::string_view status);
JsonWriter open_document(JsonWriter::Sink sink, std::string_view command, std::string_view status);

/// True if a file descriptor is a terminal.
bool is_terminal(int fd);
/// Colours of the stream with this descriptor.
Style style_of(const GlobalArgs& global, int fd);

}  // namespace shardtool::cli
