#include "lib/format/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "lib/base/error.h"
#include "lib/base/text.h"
#include "lib/format/names.h"

namespace shardtool::format {
namespace {

/// "optim: 12 tensors" per first part of a name.
std::vector<std::string> describe(const std::map<std::string, i64>& counts) {
  std::vector<std::string> texts;
  for (const auto& [first, count] : counts) {
    texts.push_back(fmt::format("{}: {}", first, plural(count, "tensor")));
  }
  return texts;
}

std::string first_part(const std::string& name) {
  return name.substr(0, name.find('.'));
}

/// Removes `prefix` from the names that begin with it, and all other elements. Counts these.
template <class Named>
void keep(std::vector<Named>& all, const std::string& prefix, std::map<std::string, i64>& others) {
  std::erase_if(all, [&](Named& one) {
    if (one.name.size() > prefix.size() && one.name.starts_with(prefix)) {
      one.name.erase(0, prefix.size());
      return false;
    }
    ++others[first_part(one.name)];
    return true;
  });
}

}  // namespace

void keep_below(Checkpoint& checkpoint, const std::string& prefix) {
  if (checkpoint.manifest) {
    throw Error(ErrorCode::kUsage, "an output of shardtool is read with all its files")
        .at({checkpoint.path, 0, 0, ""})
        .help(fmt::format("leave out '#{}'", quote_for_message(prefix)));
  }
  std::map<std::string, i64> others;
  const bool is_chunked = !checkpoint.chunked.empty();
  if (is_chunked) {
    keep(checkpoint.chunked, prefix + ".", others);
  } else {
    keep(checkpoint.tensors, prefix + ".", others);
  }
  if (is_chunked ? checkpoint.chunked.empty() : checkpoint.tensors.empty()) {
    throw Error(ErrorCode::kFileMissing,
                fmt::format("no tensor's name begins with '{}.'", quote_for_message(prefix)))
        .at({checkpoint.path, 0, 0, ""})
        .note("found", list_for_message(describe(others)));
  }
  std::map<std::string, i64> other_entries;
  keep(checkpoint.others, prefix + ".", other_entries);
  if (others.empty()) return;
  checkpoint.warnings.push_back(
      {fmt::format("tensors outside of '{}.' are left out: {}", quote_for_message(prefix),
                   list_for_message(describe(others))),
       "", Oddity::kOtherEntry});
}

}  // namespace shardtool::format
