#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardtool {

/// Every kind of failure of shardtool. Closed: error_table() holds id, exit status and explanation
/// of each, and a test provokes each of them.
enum class ErrorCode {
  // usage, exit 2
  kUsage,
  kMemoryBudget,
  // mapping or configuration, exit 3
  kMappingSyntax,
  kMappingSchema,
  kNotDivisible,
  kUnknownName,
  kNoRule,
  kAmbiguousRule,
  kUnusedRule,
  kShapeMismatch,
  kMeshAxisReused,
  kEmptyShard,
  kBlockStraddle,
  kSizeExpression,
  kExtends,
  kGroups,
  kMesh,
  kAssertion,
  kStrategy,
  kSubByteCut,
  kTied,
  kConfig,
  kHardwareProfile,
  kPlacement,
  // input, exit 4
  kUnreadable,
  kMalformed,
  kHeaderJson,
  kTensorInvalid,
  kIndexInvalid,
  kFileMissing,
  kUnsupported,
  kManifestInvalid,
  kInputChanged,
  kDataMismatch,
  kCoverage,
  kOtherRun,
  kPlanInvalid,
  kStoreRefused,
  kShareMissing,
  // output, exit 5
  kOutputExists,
  kWriteFailed,
  kNoSpace,
  kOutputLocked,
  kOutputAliasesInput,
  // resources, exit 6
  kLimit,
  kPeerLost,
  kEngineMissing,
  kDeviceFailed,
  kStoreUnreachable,
  // exit 130
  kInterrupted,
  // exit 70
  kInternal,
};

/// One row of the error table.
struct ErrorInfo {
  ErrorCode code;
  std::string_view id;  ///< stable, e.g. "E0203"
  int exit_status;  ///< 2 usage, 3 mapping, 4 input, 5 output, 6 resource, 130 interrupted, 70 bug
  std::string_view title;
  std::string_view explanation;  ///< meaning and remedy, printed by `explain <id>`
};

std::span<const ErrorInfo> error_table();
const ErrorInfo& error_info(ErrorCode code);
/// Returns the row with this id ("E0203", case-insensitive), or null.
const ErrorInfo* find_error(std::string_view id);

/// Position in a text file. Line and column count from 1; 0 means unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string pointer;  ///< JSON pointer (RFC 6901) of the value; may be empty

  bool operator==(const Place&) const = default;
};

/// The only exception that shardtool throws. Build it with the fluent setters:
///   throw Error(ErrorCode::kShapeMismatch, "...").tensor(name).note("found", "...").help("...");
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  Error& at(Place place) &;
  Error&& at(Place place) && { return std::move(at(std::move(place))); }
  /// Sets the name of the affected tensor unless an inner call has set it.
  Error& tensor(std::string_view name) &;
  Error&& tensor(std::string_view name) && { return std::move(tensor(name)); }
  /// Adds a fact, printed as "= label: text".
  Error& note(std::string_view label, std::string text) &;
  Error&& note(std::string_view label, std::string text) && {
    return std::move(note(label, std::move(text)));
  }
  /// Adds a line that explains how to fix the problem.
  Error& help(std::string text) &;
  Error&& help(std::string text) && { return std::move(help(std::move(text))); }

  /// Marks the work so far as kept: the same command with --resume continues it.
  Error& resumable() &;
  /// Marks that the process that reports errors for the whole launch is lost, or takes no part in
  /// the run: every process that catches this error reports it itself.
  Error& leaderless() &;
  Error&& leaderless() && { return std::move(leaderless()); }

  ErrorCode code() const { return code_; }
  int exit_status() const { return error_info(code_).exit_status; }
  std::string_view id() const { return error_info(code_).id; }
  const std::string& message() const { return message_; }
  const std::optional<Place>& place() const { return place_; }
  const std::string& tensor_name() const { return tensor_; }
  const std::vector<std::pair<std::string, std::string>>& notes() const { return notes_; }
  const std::vector<std::string>& help_lines() const { return help_; }
  bool is_resumable() const { return is_resumable_; }
  bool is_leaderless() const { return is_leaderless_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::optional<Place> place_;
  std::string tensor_;
  std::vector<std::pair<std::string, std::string>> notes_;
  std::vector<std::string> help_;
  bool is_resumable_ = false;
  bool is_leaderless_ = false;
};

}  // namespace shardtool
