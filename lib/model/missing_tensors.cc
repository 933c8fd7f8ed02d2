#include "lib/model/missing_tensors.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <variant>
#include <vector>

#include "lib/base/name_map.h"
#include "lib/model/graph/layer_number.h"

namespace shardtool::model {
namespace {

class Search {
 public:
  Search(const Model& model, std::span<const TensorSpec> tensors)
      : model_(model), tensors_(tensors) {
    names_.reserve(tensors.size());
    for (const TensorSpec& tensor : tensors) names_.insert(tensor.name);
  }

  MissingTensors run() {
    for (const Layer& layer : model_.layers) {
      for (const BoundOp& op : layer.ops) add(op, layer.number);
    }
    return std::move(missing_);
  }

 private:
  void add(const BoundOp& op, i64 layer) {
    const auto& refs = ops::refs_of(op);
    for (size_t i = 0; i < refs.size(); ++i) {
      const i64 count = tensors_of(op, refs[i]);
      if (refs[i].optional || std::ssize(op.weights[i]) == count) continue;
      for (i64 number = 0; number < count; ++number) add(refs[i], layer, number);
    }
  }

  i64 tensors_of(const BoundOp& op, const ops::WeightRef& ref) const {
    if (op.form == nullptr) return ref.heads ? model_.size(*ref.heads) : 1;
    return op.form->per_expert ? model_.size(std::get<ops::Experts>(op.op->kind).experts) : 1;
  }

  void add(const ops::WeightRef& ref, i64 layer, i64 number) {
    const auto number_of = [&](const std::string& name) {
      if (name == "layer") return layer;
      const auto named = model_.graph->layer_numbers.find(name);
      const bool is_named = named != model_.graph->layer_numbers.end();
      return is_named ? value_at(named->second, model_.config, layer) : number;
    };
    std::vector<std::string> names;
    for (const std::string& name : ref.names) {
      const ops::Spelling spellings(name);
      for (size_t choice = 0; choice < spellings.count(); ++choice) {
        names.push_back(spellings.text(choice, number_of));
        if (names_.contains(names.back())) return;
      }
    }
    missing_.names.insert(names.begin(), names.end());
    if (missing_.count++ == 0) {
      missing_.first = likeliest_name(ref.names.front(), number_of, tensors_);
    }
  }

  const Model& model_;
  std::span<const TensorSpec> tensors_;
  NameViewSet names_;
  MissingTensors missing_;
};

}  // namespace

MissingTensors missing_tensors(const Model& model, std::span<const TensorSpec> tensors) {
  return Search(model, tensors).run();
}

std::string likeliest_name(const std::string& glob, const ops::Spelling::NumberOf& number_of,
                           std::span<const TensorSpec> tensors) {
  const ops::Spelling spellings(glob);
  std::string likeliest = spellings.text(0, number_of);
  std::ptrdiff_t most = 0;
  for (size_t choice = 0; choice < spellings.count(); ++choice) {
    const std::string spelling = spellings.text(choice, number_of);
    for (const TensorSpec& tensor : tensors) {
      const auto differs =
          std::mismatch(spelling.begin(), spelling.end(), tensor.name.begin(), tensor.name.end());
      const auto dot = std::find(std::reverse_iterator(differs.first), spelling.crend(), '.');
      const auto shared = spelling.crend() - dot;  // up to a dot
      const bool is_shorter = shared == most && spelling.size() < likeliest.size();
      if (shared < most || (shared == most && !is_shorter)) continue;
      likeliest = spelling;
      most = shared;
    }
  }
  return likeliest;
}

}  // namespace shardtool::model
