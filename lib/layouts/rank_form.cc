#include "lib/layouts/rank_form.h"

#include <nlohmann/json.hpp>

namespace shardtool::layouts {

RankForm decode_rank_form(const nlohmann::json& json) {
  RankForm form;
  for (const auto& cut : json.at("cuts")) {
    form.cuts.push_back({mapping::Glob(cut.at("name").get<std::string>()),
                         cut.at("axis").get<size_t>(), cut.value("halves", false),
                         cut.value("groups", "")});
  }
  json.at("layers").get_to(form.layers);
  json.at("experts").get_to(form.experts);
  json.at("last").get_to(form.last);
  return form;
}

}  // namespace shardtool::layouts
