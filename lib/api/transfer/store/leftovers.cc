#include "lib/api/transfer/store/leftovers.h"

#include <time.h>

#include <algorithm>

#include "lib/api/transfer/joined_shares.h"
#include "lib/api/transfer/run_note.h"
#include "lib/api/transfer/store/journal.h"
#include "lib/api/transfer/store/owned_prefix.h"
#include "lib/base/error.h"
#include "lib/store/reader.h"
#include "lib/store/s3/credentials.h"
#include "lib/store/s3/upload.h"

namespace shardtool::api {
namespace {

/// Adds bytes and age of the uploads of a run.
void look_at_uploads(const UploadTable& table, InterruptedRun& found) {
  store::s3::Client& client = store::s3::shared_client();
  for (const store::s3::PartedObject& object : table.objects) {
    for (const auto& part : store::s3::list_parts(client, object.url, object.upload)
                                .value_or(std::vector<store::s3::SentPart>())) {
      found.bytes += part.bytes;
    }
  }
  if (table.objects.empty()) return;
  for (const auto& upload : store::s3::list_uploads(client, table.objects.front().url)) {
    if (upload.id != table.objects.front().upload) continue;
    found.seconds_ago = std::max<i64>(::time(nullptr) - store::s3::unix_time(upload.begun), 0);
  }
}

InterruptedRun look_at(const StorePlace& place, const std::string& id) {
  InterruptedRun found;
  found.output = place.prefix();
  found.folder = place.hidden(id, "").text();
  const auto table = place.uploads(id);
  if (!table) return found;
  found.tensors_finished = std::ssize(listed_tensors(place, id));
  const RunNote note = parse_run_note(table->about, place.prefix());
  found.command = note.command;
  found.started_in = note.started_in;
  found.tensors = note.tensors;
  found.shares = note.shares;
  if (found.shares > 0) found.missing = missing_of(place.ended_shares(id), found.shares);
  look_at_uploads(*table, found);
  return found;
}

void add_runs(const std::string& prefix, InterruptedRuns& found) {
  const StorePlace place(prefix);
  for (const std::string& id : place.look().runs) found.runs.push_back(look_at(place, id));
}

}  // namespace

InterruptedRuns runs_on_store(const std::string& folder) {
  store::forget_listing(folder);
  if (!store::is_folder(folder)) {
    throw Error(ErrorCode::kFileMissing, "there is neither a folder nor an interrupted run of it")
        .at({folder, 0, 0, {}})
        .help("name the folder that holds the output, or the output itself");
  }
  InterruptedRuns found;
  add_runs(folder, found);
  for (const std::string& name : store::folders_in(folder)) {
    if (!name.starts_with('.')) add_runs(folder + "/" + name, found);
  }
  return found;
}

InterruptedRuns discard_on_store(const std::string& output) {
  const StorePlace place(output);
  const StorePlace::Found there = place.look();
  if (there.runs.empty() && !there.is_marked()) {
    throw Error(ErrorCode::kFileMissing, "no interrupted run left anything for this output")
        .at({output, 0, 0, {}});
  }
  InterruptedRuns discarded;
  for (const std::string& id : there.runs) discarded.runs.push_back(look_at(place, id));
  for (const std::string& id : there.runs) place.discard(id);
  if (!there.is_marked()) return discarded;
  // An output that has its manifest is whole: the new one, or the old one, still.
  const bool is_whole = std::ranges::find(there.names, format::kManifestName) != there.names.end();
  if (!is_whole) place.remove(there.names);
  place.abort_all_uploads();
  if (const auto owner = owner_of(place)) OwnedPrefix(place, *owner).unmark();
  return discarded;
}

}  // namespace shardtool::api
