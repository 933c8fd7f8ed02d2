#include "lib/api/mapping/full_places.h"

#include <filesystem>

#include "lib/store/reader.h"

namespace shardtool::api {

void complete_place(Error& error, const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || !error.place()) return;
  Place place = *error.place();
  const auto full = folder / place.file;
  const bool is_name = place.file != "config.json" && place.file.find(':') == std::string::npos &&
                       !place.file.starts_with('-');
  const bool is_complete = place.file.starts_with(folder.string() + "/");
  if (place.file.empty() || !is_name || is_complete || !store::is_file(full.string())) return;
  place.file = full.string();
  error.at(std::move(place));
}

}  // namespace shardtool::api
