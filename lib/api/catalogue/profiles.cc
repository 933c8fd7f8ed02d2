#include "lib/api/catalogue/profiles.h"

#include <filesystem>

#include "lib/plan/collective/profile_list.h"
#include "lib/store/local/file.h"

namespace shardtool::api {
namespace {

constexpr i64 kMaxProfileBytes = 1 << 20;

}  // namespace

plan::HardwareProfile load_profile(const std::string& name_or_file) {
  if (!name_or_file.ends_with(".json")) return plan::find_profile(name_or_file);
  const std::string name = std::filesystem::path(name_or_file).filename().string();
  return plan::decode_profile(store::read_text(name_or_file, kMaxProfileBytes), name);
}

std::vector<plan::HardwareProfile> list_profiles() {
  std::vector<plan::HardwareProfile> profiles;
  for (const std::string& name : plan::profile_names())
    profiles.push_back(plan::find_profile(name));
  return profiles;
}

std::string profile_text(const std::string& name) {
  return std::string(plan::profile_text(name));
}

}  // namespace shardtool::api
