#include "shardtool/model/window.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "shardtool/base/error.h"
#include "shardtool/base/text.h"

namespace shardtool::model {
namespace {

using nlohmann::json;

bool is_on(const Window& window, const mapping::ModelConfig& config) {
  if (window.when.empty()) return true;
  const json* value = config.find(window.when);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

/// Whether the config lists the layer among those with a window; nothing where it has no list.
std::optional<bool> listed(const mapping::ModelConfig& config, i64 layer) {
  if (config.find("layer_types") == nullptr || config.find("layer_types")->is_null()) {
    return std::nullopt;
  }
  const std::string path = fmt::format("layer_types[{}]", layer);
  const std::string type = config.text(path).value_or("");
  if (type == "sliding_attention") return true;
  if (type == "full_attention") return false;
  throw Error(ErrorCode::kUnsupported,
              fmt::format("'{}' in {} is no attention that is computed", path, config.file()))
      .note("found", quote_for_message(type, 60))
      .note("expected", "sliding_attention or full_attention");
}

bool has_window(const Window& window, const mapping::ModelConfig& config, i64 layer) {
  if (window.layers == Window::Layers::kAll) return true;
  if (const auto is_listed = listed(config, layer)) return *is_listed;
  if (window.layers == Window::Layers::kEven) return layer % 2 == 0;
  // Which layers those are when nothing lists them has changed between versions of the library.
  throw Error(ErrorCode::kConfig,
              fmt::format("{} asks for a window and does not say on which layers", config.file()))
      .help("add \"layer_types\": \"sliding_attention\" or \"full_attention\" for each layer");
}

}  // namespace

std::optional<i64> window_of(const Attention& attention, const mapping::ModelConfig& config,
                             i64 layer) {
  if (!attention.window || !is_on(*attention.window, config)) return std::nullopt;
  const json* size = config.find(attention.window->config);
  const bool has_one = size != nullptr && size->is_number_integer() && size->get<i64>() > 0;
  if (!has_one || !has_window(*attention.window, config, layer)) return std::nullopt;
  return size->get<i64>();
}

}  // namespace shardtool::model
