#include "lib/ops/attention/window.h"

#include <doctest/doctest.h>

#include "lib/model/graph/graph_list.h"
#include "tests/support/throws.h"

using namespace shardtool;
using Windows = std::vector<i64>;

namespace {

const ops::Attention& attention_of(const model::Graph& graph) {
  for (const auto& ways : graph.stacks[0].blocks[0].stretches) {
    for (const ops::Op& op : ways[0].ops) {
      if (const auto* attention = std::get_if<ops::Attention>(&op.kind)) return *attention;
    }
  }
  throw std::logic_error("a block without attention");
}

/// Windows of the first layers, 0 for no window.
Windows windows(const std::string& family, const std::string& config_text, i64 layers = 3) {
  const model::Graph graph = model::load_graph(family);
  const auto config = mapping::parse_config(config_text, "config.json");
  Windows found;
  for (i64 layer = 0; layer < layers; ++layer)
    found.push_back(ops::window_of(attention_of(graph), config, layer).value_or(0));
  return found;
}

}  // namespace

TEST_CASE("a window is on every layer, on the even ones, or on those that the config lists") {
  const std::string some =
      R"({"sliding_window": 8, "layer_types": ["full_attention", "sliding_attention", "full_attention"]})";
  CHECK(windows("mistral", R"({"sliding_window": 8})") == Windows{8, 8, 8});
  CHECK(windows("mistral", R"({"sliding_window": null})") == Windows{0, 0, 0});
  CHECK(windows("llama", R"({"sliding_window": 8})") == Windows{0, 0, 0});
  CHECK(windows("gemma2", R"({"sliding_window": 8})") == Windows{8, 0, 8});
  CHECK(windows("gemma2", some) == Windows{0, 8, 0});
  CHECK(windows("kolibri1", R"({"sliding_window": 8})", 5) == Windows{8, 8, 8, 8, 0});
  CHECK(windows("kolibri1", "{}", 5) == Windows{513, 513, 513, 513, 0});
}

TEST_CASE("a window of a family has its own size where the config says nothing") {
  const auto flash = [](const std::string& sizes) {
    const model::Graph graph = model::load_graph("deepseek_v4");
    for (const auto& ways : graph.stacks[0].blocks[0].stretches) {
      for (const ops::Op& op : ways.back().ops) {
        const auto* attention = std::get_if<ops::Attention>(&op.kind);
        if (attention == nullptr) continue;
        return ops::window_of(*attention, mapping::parse_config(sizes, "config.json"), 0)
            .value_or(0);
      }
    }
    throw std::logic_error("a block without attention");
  };
  CHECK(flash("{}") == 128);
  CHECK(flash(R"({"sliding_window": 8})") == 8);
}

TEST_CASE("a window that is said without the token itself is one longer, and counts first") {
  const auto mimo = [](const std::string& sizes) {
    const model::Graph graph = model::load_graph("mimo_v2_flash");
    const auto& ways = graph.stacks[0].blocks[0].stretches[0];
    const auto& attention = std::get<ops::Attention>(ways[0].ops.back().kind);
    return ops::window_of(attention, mapping::parse_config(sizes, "config.json"), 0).value_or(0);
  };
  CHECK(mimo(R"({"sliding_window": 9})") == 9);
  CHECK(mimo(R"({"sliding_window": 9, "sliding_window_size": null})") == 9);
  CHECK(mimo(R"({"sliding_window": 8, "sliding_window_size": 8})") == 9);
  CHECK(mimo(R"({"sliding_window": null})") == 0);
}

TEST_CASE(
    "a window to both sides has half of its size before a token, half behind, and the token") {
  const std::string types = R"("layer_types": ["full_attention", "sliding_attention"])";
  CHECK(windows("modernbert", R"({"local_attention": 128, )" + types + "}", 2) == Windows{0, 65});
  CHECK(windows("modernbert", R"({"local_attention": 9, )" + types + "}", 2) == Windows{0, 5});
  const std::string published = R"({"local_attention": 128, "global_attn_every_n_layers": 3})";
  CHECK(windows("modernbert", published, 5) == Windows{0, 65, 65, 0, 65});
}

TEST_CASE("a window that the config switches off is none, whatever else it says") {
  const auto config = [](const std::string& on, const std::string& more) {
    return R"({"sliding_window": 8, "use_sliding_window": )" + on + more + "}";
  };
  const std::string types =
      R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention"])";
  CHECK(windows("qwen2", config("true", types)) == Windows{0, 8, 0});
  CHECK(windows("qwen2", config("false", types)) == Windows{0, 0, 0});
  CHECK(windows("qwen2", R"({"sliding_window": 8})") == Windows{0, 0, 0});
  CHECK(windows("qwen3", config("true", "")) == Windows{0, 0, 0});
  CHECK(windows("qwen3", config("true", R"(, "max_window_layers": 1)")) == Windows{0, 8, 8});
  CHECK(windows("qwen3_moe", config("true", "")) == Windows{8, 8, 8});
  CHECK(windows("qwen3_moe", config("false", "")) == Windows{0, 0, 0});
}

TEST_CASE("a window on layers that nothing names, and another attention, are errors") {
  CHECK_ERROR(kConfig, windows("cwm", R"({"sliding_window": 8})"));
  const std::string chunked = R"({"sliding_window": 8, "layer_types": ["chunked_attention"]})";
  CHECK_ERROR(kUnsupported, windows("gemma2", chunked, 1));
  const std::string short_list = R"({"sliding_window": 8, "layer_types": ["full_attention"]})";
  CHECK(windows("gemma2", short_list, 1) == Windows{0});
  CHECK_ERROR(kUnsupported, windows("gemma2", short_list, 2));
}

TEST_CASE("a chunk is a window") {
  const std::string config = R"({"attention_chunk_size": 8, "no_rope_layers": [1, 0, 1]})";
  const model::Graph graph = model::load_graph("llama4");
  const auto& ways = graph.stacks.back().blocks[0].stretches[1];
  const auto& attention = std::get<ops::Attention>(ways[0].ops.back().kind);
  CHECK(ops::window_of(attention, mapping::parse_config(config, "config.json"), 0) == 8);
  CHECK(attention.window->kind == ops::Window::Kind::kChunked);
}
