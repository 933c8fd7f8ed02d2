// model.safetensors.index.json.
#include <algorithm>
#include <string>

#include "lib/base/json_text.h"
#include "lib/format/hugging_face/hf_index.h"
#include "lib/format/names.h"
#include "tests/fuzz/property.h"
#include "tests/fuzz/targets.h"

namespace shardtool::fuzz {
namespace {

using format::HfIndex;

std::string text_of(const HfIndex& index) {
  std::string text = "{";
  if (index.total_size) {
    text += R"("metadata":{"total_size":)" + std::to_string(*index.total_size) + "},";
  }
  text += "\"weight_map\":{";
  for (size_t i = 0; i < index.weights.size(); ++i) {
    const HfIndex::Weight& weight = index.weights[i];
    text += (i == 0 ? "" : ",") + json_quote(weight.tensor) + ":" +
            json_quote(index.files[static_cast<size_t>(weight.file)]);
  }
  return text + "}}";
}

bool same(const HfIndex& a, const HfIndex& b) {
  const auto same_weight = [](const HfIndex::Weight& x, const HfIndex::Weight& y) {
    return x.tensor == y.tensor && x.file == y.file;
  };
  return a.total_size == b.total_size && a.files == b.files &&
         std::equal(a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(),
                    same_weight);
}

void check_contract(const HfIndex& index) {
  for (size_t i = 0; i < index.files.size(); ++i) {
    holds(format::is_plain_file_name(index.files[i]), "a name that is not plain was accepted");
    holds(i == 0 || index.files[i - 1] < index.files[i], "files are not sorted, each once");
  }
  holds(!index.weights.empty(), "an index of nothing was accepted");
  for (size_t i = 0; i < index.weights.size(); ++i) {
    const auto file = static_cast<size_t>(index.weights[i].file);
    holds(file < index.files.size(), "a weight lies in no file");
    holds(i == 0 || index.weights[i - 1].tensor < index.weights[i].tensor,
          "weights are not sorted, each once");
  }
}

}  // namespace

void index(std::string_view input) {
  const auto read = accepted([&] { return format::parse_index(input, "f"); });
  int problems = 0;
  const auto surveyed = accepted(
      [&] { return format::parse_index(input, "f", [&](format::Problem) { ++problems; }); });
  holds((!surveyed || problems > 0) == !read, "opening and surveying disagree");
  if (!read) return;
  check_contract(*read);
  holds(same(*read, format::parse_index(text_of(*read), "again")),
        "written and read again, the index differs");
}

}  // namespace shardtool::fuzz
