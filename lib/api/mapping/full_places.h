#pragma once

#include <string>

#include "lib/api/transform.h"
#include "lib/base/error.h"

namespace shardtool::api {

/// Completes the place of an error in the user's mapping file at `path` or in one that it extends:
/// mappings know their documents by paths below the file's folder, and users by the path that they
/// typed.
void complete_place(Error& error, const std::string& path);

/// Calls `step` and completes the places of its errors.
template <class Step>
auto with_full_places(const MappingChoice& choice, Step step) {
  try {
    return step();
  } catch (Error& error) {
    if (!choice.path.empty()) complete_place(error, choice.path);
    throw;
  }
}

}  // namespace shardtool::api
