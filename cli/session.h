#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/exit_code.h"
#include "cli/print/color.h"
#include "cli/print/json_writer.h"
#include "cli/print/output.h"
#include "cli/print/progress.h"

namespace shardtool::cli {

/// Flags that every command takes, as typed.
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

/// The status of a document: whether the command found what one hoped for.
enum class Status { kOk, kFindings };

/// One invocation: how to answer and where.
class Session {
 public:
  explicit Session(const GlobalArgs& global);

  bool json() const { return global_.json; }
  bool quiet() const { return global_.quiet; }
  bool verbose() const { return global_.verbose; }
  Output& out() { return out_; }
  const Style& out_style() const { return out_style_; }
  ProgressMode progress() const { return progress_; }

  /// A warning on standard error, unless quiet. Documents carry their warnings themselves.
  void warn(std::string_view text) const;

  /// Prints a document: the envelope, and inside it whatever `fields` writes.
  template <class Fields>
  void document(std::string_view command, Status status, Fields fields) {
    auto json = open_document(command, status == Status::kOk ? "ok" : "findings");
    fields(json);
    json.end_object();
  }

 private:
  JsonWriter open_document(std::string_view command, std::string_view status);

  const GlobalArgs& global_;
  Output out_;
  Style out_style_;
  Style err_style_;
  ProgressMode progress_;
};

/// Opens {"format_version": ..., "tool": ..., "command": ..., "status": ... and leaves it open.
JsonWriter open_document(Output& out, std::string_view command, std::string_view status);
JsonWriter open_document(JsonWriter::Sink sink, std::string_view command, std::string_view status);

/// Whether a file descriptor is a terminal.
bool is_terminal(int fd);
/// The colours of the stream with this descriptor.
Style style_of(const GlobalArgs& global, int fd);

}  // namespace shardtool::cli
