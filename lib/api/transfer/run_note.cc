#include "lib/api/transfer/run_note.h"

#include <filesystem>

#include "lib/api/transfer/share_record.h"
#include "lib/base/json_reader.h"
#include "lib/base/json_writer.h"

namespace shardtool::api {
namespace {

constexpr int kNoteDepth = 2;

}  // namespace

exec::JournalTitle journal_title(const RunIdentity& identity, const WriteOptions& options,
                                 const std::string& output, i64 tensors) {
  std::error_code unknown;  // of a working folder that was deleted
  const std::string started_in = std::filesystem::current_path(unknown);
  std::string about;
  JsonWriter json(about, kJsonDocument);
  json.begin_object().list("command", options.command_line).field("started_in", started_in);
  json.field("output", output).field("tensors", tensors);
  json.field("shares", options.share ? options.share->of : 0).end_object();
  about.pop_back();  // the line break
  return {identity.text(), about};
}

RunNote parse_run_note(const std::string& about, const std::string& journal) {
  RunNote note;
  JsonReader in(about, {journal, ErrorCode::kManifestInvalid}, kNoteDepth);
  const auto read_command = [&] {
    in.begin_array();
    while (in.next_element()) note.command.push_back(in.string());
  };
  in.object({{"command", read_command},
             {"started_in", [&] { note.started_in = in.string(); }},
             {"output", [&] { note.output = in.string(); }},
             {"tensors", [&] { note.tensors = in.integer(); }},
             {"shares", [&] { note.shares = read_share_number(in); }}});
  in.finish();
  return note;
}

}  // namespace shardtool::api
