#include <doctest/doctest.h>

#include <string_view>

#include "lib/mesh/mesh.h"
#include "lib/plan/placement/redistribute.h"
#include "tests/plan/placed.h"

/// Sequences that openxla/shardy expects of its pass from reshards to collectives (test of
/// reshard_to_collectives, 2026; those without parts of mesh axes).
using namespace shardtool;
using plan::Placements;

namespace {

struct Sequence {
  const char* mesh;
  const char* placements;  ///< "x,y;z > x;": the mesh axes of every tensor axis, step by step
};

constexpr Sequence kSequences[] = {
    {"x=2,y=2", "x;y > x;y"},
    {"x=6", "x; > ;"},
    {"x=2,y=2", "y;x > y;"},
    {"x=2,y=2,z=2", "x,y,z; > x;"},
    {"x=2,y=2,z=2", "y,z;x > y;x"},
    {"x=2,y=2,z=2", "; > x;y,z"},
    {"x=2,y=2,z=2", "x;y > x;y,z"},
    {"x=2,y=2,z=2", "x;y; > ;y;x"},
    {"x=2,y=2,z=2", "x;;y,z > x;y,z;"},
    {"x=2,y=2,z=2", "x,z;y > x;y,z"},
    {"x=4,y=2,z=4", ";y,x; > x;y; > x;;y"},
    {"x=4,y=2,z=4", "x;y,z; > x,z;y; > x,z;;y"},
    {"x=2,y=2,z=2", "y;x; > y;;x > ;;x,y"},
    {"x=2,y=2,z=2", "y;x,z; > x;y,z; > ;y,z;x > ;;x,y,z"},
    {"x=4,y=2,z=4", ";y,z; > x;y,z; > x,z;y; > x,z;;y"},
    {"x=2,y=2,z=2", ";x; > ;x,y,z; > ;;x,y,z"},
    {"x=2,y=2,z=2", "z;x; > z;x,y; > z;;x,y > ;;x,y,z"},
    {"x=2,y=2,z=2", "y;x; > y,z;x; > y,z;;x > ;;x,y,z"},
    {"x=2,y=2,z=2", ";x,y; > ;x,y,z; > ;x;y,z > x;;y,z"},
    {"x=2,y=2,z=2,w=2", "z;x; > z,w;x,y; > z,w;;x,y > ;;x,y,z,w"},
    {"x=2,y=2,z=2,w=2", "z;x; > z;x,y;w > y;z,w;x > ;z,w;x,y > ;;x,y,z,w"},
    {"x=2,y=2,z=2", "x,y; > x,y,z; > x;y,z"},
    {"x=2,y=2,z=2,w=2", "z;x; > z;x,y; > w;x,y; > w;;x,y"},
    {"x=2,y=2,z=2", ";x > y,z;x > x,y;z"},
    {"x=2,y=2,z=2", ";x;z > ;x;z,y > ;z;x,y > ;;x,y,z"},
    {"x=2,y=2,z=2", ";x,z > y;x,z > x;y,z > x,y,z;"},
    {"x=2,y=2,z=2,w=2", ";z,w,y > x;z,w,y > x;w,y,z > x,y,z;w > x,y,z;"},
    {"x=2,y=2,z=2", ";x > y,z;x > x,y;z > x,y,z;"},
    {"x=2,y=2,z=2", ";x,y; > ;x,y;z > ;x,z;y > ;x;y,z > x;;y,z"},
    {"x=2,y=2,z=2", "x,y; > x,y;z > x,z;y > x;y,z"},
    {"x=2,y=2", ";x > y;x > x;y > x,y;"},
    {"x=2,y=2,z=2", "z;y > z;x"},
    {"x=2,y=2,z=2,w=2", "x,y,z; > w,y,z;"},
    {"x=2,y=2,z=2", "x,y; > z,y; > z;"},
    {"x=2,y=2,z=2", "x,y;z > z,y;x > z;"},
    {"x=2,y=2", "x; > x;y > ;y"},
    {"x=2,y=2", "x;y > y;x"},
};

std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  for (size_t end = 0; end != text.npos;) {
    end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end != text.npos) text.remove_prefix(end + separator.size());
  }
  return parts;
}

Placements placements_of(const mesh::Mesh& mesh, std::string_view text) {
  std::vector<std::vector<int>> order;
  for (const std::string_view axis : parts_of(text, ";")) {
    order.emplace_back();
    for (const std::string_view name : parts_of(axis, ",")) {
      for (size_t a = 0; a < mesh.axes().size(); ++a) {
        if (mesh.axes()[a].name == name) order.back().push_back(static_cast<int>(a));
      }
    }
  }
  return plan::cut(mesh, std::move(order));
}

std::string steps_of(const mesh::Mesh& mesh, const plan::Redistribution& way) {
  std::string text;
  for (const auto& step : way.steps) text += (text.empty() ? "" : "; ") + to_string(step, mesh);
  return text;
}

}  // namespace

TEST_CASE("no way moves more than that of Shardy, nor less than devices lack (D41)") {
  CHECK(std::size(kSequences) == 37);
  for (const Sequence& sequence : kSequences) {
    CAPTURE(sequence.mesh);
    CAPTURE(sequence.placements);
    const auto mesh = mesh::parse_mesh(sequence.mesh);
    std::vector<Placements> theirs;
    for (const auto text : parts_of(sequence.placements, " > ")) {
      theirs.push_back(placements_of(mesh, text));
    }
    const auto shape = plan::even_shape(mesh, static_cast<int>(theirs.front().order.size()));
    const auto lacking = [&](const Placements& from, const Placements& to) {
      return plan::elements_lacking(layout_of(mesh, shape, from), layout_of(mesh, shape, to));
    };
    i64 moved = 0;
    for (size_t i = 1; i < theirs.size(); ++i) moved += lacking(theirs[i - 1], theirs[i]);
    const auto ours = redistribute(mesh, shape, theirs.front(), theirs.back());
    REQUIRE(ours);
    CAPTURE(steps_of(mesh, *ours));
    CHECK(ours->elements <= moved);
    CHECK(ours->elements >= lacking(theirs.front(), theirs.back()));
    // A move that one collective can do must be one collective.
    if (theirs.size() == 2 && moved > 0) CHECK(ours->elements == moved);
  }
}

TEST_CASE("where one way is the cheapest its steps are Shardy's (D41)") {
  const auto steps = [](const char* mesh_text, const Shape& shape, const char* from,
                        const char* to) {
    const auto mesh = mesh::parse_mesh(mesh_text);
    const auto way = redistribute(mesh, shape, placements_of(mesh, from), placements_of(mesh, to));
    REQUIRE(way);
    return steps_of(mesh, *way);
  };
  CHECK(steps("x=2,y=2", {4, 4}, "x;y", "y;x") == "permute x, y");
  CHECK(steps("x=2,y=2,z=2", {8, 8}, "x,y,z;", "x;") == "all_gather y, z of axis 0");
  CHECK(steps("x=2,y=2", {4, 4}, "x;", ";y") == "slice y to axis 1; all_gather x of axis 0");
  CHECK(steps("x=2,y=2,z=2", {8, 4}, "x,y;", "x;y,z") ==
        "slice z to axis 0; all_to_all y, z of axis 0 to axis 1");
  CHECK(steps("x=2,y=2,z=2", {8, 8, 8}, "x;y;", ";y;x") == "all_to_all x of axis 0 to axis 2");
}
