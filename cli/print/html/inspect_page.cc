#include <fmt/format.h>

#include <algorithm>

#include "cli/print/html/each_page.h"

namespace shardtool::cli {
namespace {

constexpr size_t kMostInspected = 40;

void write_groups(Page& page, const JsonView& groups, const char* heading) {
  page.begin_section(heading);
  page.begin_table({"name", "#tensors", "#bytes"});
  const auto rows = groups.elements();
  for (size_t r = 0; r < std::min(kMostInspected, rows.size()); ++r) {
    page.begin_row().text_cell(rows[r]["name"].text()).count_cell(rows[r]["tensors"]);
    page.bytes_cell(rows[r]["bytes"]).end_row();
  }
  page.end_table();
  page.note_rest(rows.size(), kMostInspected);
  page.end_section();
}

void write_devices(Page& page, const JsonView& bytes) {
  page.begin_section("Bytes of each rank");
  page.begin_table({"#rank", "#bytes"});
  for (size_t rank = 0; rank < std::min(kMostInspected, bytes.size()); ++rank) {
    page.begin_row().cell([&] { page.text(fmt::format("{}", rank)); }, true);
    page.bytes_cell(bytes[rank]).end_row();
  }
  page.end_table();
  page.note_rest(bytes.size(), kMostInspected);
  page.end_section();
}

}  // namespace

void write_inspect(Page& page, const JsonView& inspect) {
  const JsonView checkpoint = inspect["checkpoint"];
  write_title(page, checkpoint["path"].text(), inspect);
  page.begin_verdict("plain").count(checkpoint["parameters"]).text(" parameters in ");
  page.count(checkpoint["tensors"]).text(" tensors, ").bytes(checkpoint["bytes"]).text(", ");
  page.count(checkpoint["files"]).text(checkpoint["files"].count() == 1 ? " file" : " files");
  page.text(fmt::format(" ({}", checkpoint["format"].text()));
  if (checkpoint.has("architecture")) page.text(", " + checkpoint["architecture"].text());
  page.text(").").end_verdict();
  write_rules(
      page, inspect,
      inspect.has("bytes_per_rank") ? static_cast<i64>(inspect["bytes_per_rank"].size()) : 1);
  if (inspect.has("bytes_per_rank")) write_devices(page, inspect["bytes_per_rank"]);
  write_groups(page, inspect["dtypes"], "Types");
  write_groups(page, inspect["modules"], "Modules");
  write_list(page, "Warnings", inspect["warnings"]);
}

}  // namespace shardtool::cli
