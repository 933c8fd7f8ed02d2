#include "lib/api/catalogue/layouts.h"

#include <algorithm>
#include <iterator>

#include "lib/base/json_writer.h"
#include "lib/layouts/engine_layout.h"

namespace shardtool::api {
namespace {

/// Forms of files that hold every tensor under its own name, for any model.
std::vector<LayoutInfo> forms_without_tables() {
  return {
      {"plain",
       "safetensors of every rank with the checkpoint's own names, and a manifest.json: what split "
       "writes without --layout; with DCP_SHARDING_INFO for PyTorch where every shard is a box",
       {"model-rank-{rank}-part-{part}.safetensors"},
       {{{"any"},
         "safetensors 0.8.0, the Run:ai model streamer 0.17.0, fastsafetensors 0.5.0; "
         "HuggingFaceStorageReader of torch 2.13.0 and 2.15.0"}},
       {},
       {}},
      {"torch",
       "files of torch.save, .bin, .pt, .pth and .ckpt, and rank files of FSDP, only read: by "
       "their "
       "path, or as torch:PATH",
       {},
       {{{"any"},
         "equal to what torch 2.13.0 and 2.15.0 saved; transformers 5.19.0 loads what merge makes "
         "of FSDP2's rank files"}},
       {},
       {}},
  };
}

/// Text of such a form, with the keys that the files of layouts have.
std::string text_of(const LayoutInfo& form) {
  std::string text;
  JsonWriter json(text, kJsonSpaced);
  json.begin_object({"\n  ", ",\n  ", "\n"});
  json.field("layout", form.label).field("proof", form.models.front().proof);
  json.field("description", form.description).list("files", form.files);
  json.end_object();
  return text;
}

}  // namespace

std::vector<LayoutInfo> list_layouts() {
  std::vector<LayoutInfo> list = forms_without_tables();
  for (const layouts::EngineLayout& layout : layouts::engine_layouts()) {
    LayoutInfo& info = list.emplace_back();
    info.label = layout.label();
    info.description = layout.description;
    for (const layouts::FileNames& names : layout.files) info.files.push_back(names.pattern);
    for (const layouts::LayoutModels& models : layout.models) {
      info.models.push_back({models.model_types, models.proof});
    }
    if (layout.models.empty()) info.models.push_back({{"any"}, layout.proof});
    for (const layouts::ModelCase& one : layout.experimental) {
      info.experimental.push_back(one.reason);
    }
    for (const layouts::ModelCase& one : layout.refusals) info.refused.push_back(one.reason);
    const auto [last, end] =
        std::ranges::unique(info.refused);  // of several forms, one after another
    info.refused.erase(last, end);
    if (!layout.other_axes.empty()) info.refused.push_back(layout.other_axes);
  }
  return list;
}

std::string layout_text(const std::string& label) {
  std::vector<std::string> others;
  for (const LayoutInfo& form : forms_without_tables()) {
    if (form.label == label) return text_of(form);
    others.push_back(form.label);
  }
  return std::string(layouts::find_layout(label, others).text);
}

std::vector<std::string> written_layouts() {
  std::vector<std::string> names{"plain"};
  std::ranges::move(layouts::layout_names(layouts::LayoutUse::kWritten), std::back_inserter(names));
  return names;
}

std::vector<std::string> sharded_layouts() {
  std::vector<std::string> names = written_layouts();
  std::erase_if(names, [](const std::string& name) {
    return name == "plain" || layouts::find_layout(name).models.empty();
  });
  return names;
}

std::vector<std::string> read_only_layouts() {
  return layouts::layout_names(layouts::LayoutUse::kOnlyRead);
}

}  // namespace shardtool::api
