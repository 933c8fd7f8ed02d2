#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "lib/mapping/document/name_form.h"
#include "lib/mapping/init.h"
#include "lib/mapping/presets.h"
#include "lib/mapping/propose/doubtful_cuts.h"
#include "tests/mapping/fixtures.h"
#include "tests/presets/fixture.h"

/// Holds the mapping that `init` writes for a model that no preset knows against the presets.
namespace shardtool::mapping {
namespace {

/// Tensors of a model by how the proposed cut compares with the preset's.
struct Score {
  i64 tensors = 0;
  i64 same = 0;
  i64 whole = 0;  ///< whole in the proposal, cut by the preset: safe
  i64 told = 0;   ///< cut in another way, and the rule says that it is no more than a guess
  std::vector<std::string> wrong;  ///< cut in another way, as if it were certain

  double share() const { return static_cast<double>(same) / static_cast<double>(tensors); }
};

bool is_same(const layout::Layout& a, const layout::Layout& b) {
  if (a.ranks() != b.ranks()) return false;
  return std::all_of(a.ranks().begin(), a.ranks().end(),
                     [&](i64 rank) { return a.region(rank) == b.region(rank); });
}

Score score_of(const Fixture& model, const std::string& mesh) {
  const InitialMapping initial =
      init_mapping(&model.config, "", mesh::parse_mesh(mesh), model.tensors);
  CAPTURE(initial.text);
  std::map<std::string, Certainty> certainty;
  for (const ProposalNote& note : initial.proposed) certainty[note.form] = note.certainty;
  const Resolution ours = resolve(mapping_of(initial.text), model.tensors, &model.config, {});
  const Resolution theirs =
      resolve(load_preset(model.preset), model.tensors, &model.config, over(mesh));
  std::map<size_t, const layout::Layout*> wanted;
  for (const ResolvedTensor& tensor : theirs.tensors) wanted[tensor.tensor] = tensor.layout.get();
  Score score;
  for (const ResolvedTensor& tensor : ours.tensors) {
    ++score.tensors;
    const std::string form = name_form(model.tensors[tensor.tensor].name);
    if (is_same(*tensor.layout, *wanted.at(tensor.tensor))) {
      ++score.same;
    } else if (!tensor.layout->is_sharded()) {
      ++score.whole;
    } else if (certainty.at(form) == Certainty::kSure) {
      score.wrong.push_back(form);
    } else {
      ++score.told;
    }
  }
  return score;
}

TEST_CASE("a mapping proposed for a model without its preset is close to the preset's") {
  constexpr double kLeast = 0.90;  // of all tensors
  const bool shows = std::getenv("SHARDTOOL_SHOW_PROPOSALS") != nullptr;
  for (const std::string mesh : {"tp=2", "ep=2,tp=2"}) {
    Score all;
    std::set<std::string> wrong;
    for (const Fixture& model : fixtures()) {
      CAPTURE(model.family);
      const Score score = score_of(model, mesh);
      all.tensors += score.tensors;
      all.same += score.same;
      all.whole += score.whole;
      all.told += score.told;
      for (const std::string& form : score.wrong) wrong.insert(model.family + " " + form);
      if (shows)
        fmt::print("{:<28} {:>9} {:>5} {:>5.1f} % same  {:>3} whole  {:>3} told  {:>3} wrong\n",
                   model.family, mesh, score.tensors, 100 * score.share(), score.whole, score.told,
                   score.wrong.size());
    }
    if (shows)
      fmt::print("{}: {} of {} same, {} whole, {} told, {} forms wrong\n", mesh, all.same,
                 all.tensors, all.whole, all.told, wrong.size());
    CAPTURE(mesh);
    CHECK(all.share() > kLeast);
    for (const std::string& form : wrong) FAIL_CHECK("wrong without a warning: ", form);
  }
}

/// The documents of a preset as files of a user.
Mapping as_files(const std::string& preset) {
  std::vector<DocumentText> texts = load_preset(preset).texts();
  for (DocumentText& text : texts) {
    if (text.name.starts_with("preset:")) text.name = text.name.substr(7) + ".json";
  }
  return Mapping(std::move(texts));
}

TEST_CASE("the cuts of presets raise no doubts in a file of one's own") {
  for (const Fixture& model : fixtures()) {
    const Resolution resolution =
        resolve(as_files(model.preset), model.tensors, &model.config, over("pp=1,ep=1,tp=2"));
    for (const DoubtfulCut& cut : doubtful_cuts(resolution, model.tensors, &model.config))
      FAIL_CHECK(model.family, ": ", to_string(cut));
  }
}

}  // namespace
}  // namespace shardtool::mapping
