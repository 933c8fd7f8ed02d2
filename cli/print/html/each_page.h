#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/print/html/page.h"

namespace shardtool::cli {

// One function per command: each writes the sections of its document.

void write_plan(Page& page, const JsonView& plan);
void write_plan_diff(Page& page, const JsonView& diff);
void write_plan_search(Page& page, const JsonView& search);
void write_plan_search_train(Page& page, const JsonView& search);
void write_inspect(Page& page, const JsonView& inspect);
void write_check(Page& page, const JsonView& check);
void write_validate(Page& page, const JsonView& validate);

// Parts that pages share.

/// Writes the title and, below it, the mesh ("tp=8") if the document has one.
void write_title(Page& page, std::string_view title, const JsonView& document);
/// Writes "Who holds what" if the document has "rules".
void write_rules(Page& page, const JsonView& document, i64 devices);
/// Writes a list of the texts, if there are any.
void write_list(Page& page, std::string_view heading, const JsonView& texts);

/// A row of a search, and its loss against the optimum, which has none.
using ComparedRow = std::pair<JsonView, std::optional<JsonView>>;
/// The optimum of a search and what lost to it by least. Requires an optimum.
std::vector<ComparedRow> compared_rows(const JsonView& search, size_t most);
/// "12 %: collectives" for a loss, "the best" for the optimum.
std::string loss_text(const std::optional<JsonView>& loss);
void write_loss_cell(Page& page, const std::optional<JsonView>& loss);
/// Explains the names of layouts that distribute experts, if a row has one.
void note_experts(Page& page, const JsonView& rows);
void write_runner_up(Page& page, const std::string& name, const JsonView& loss);

}  // namespace shardtool::cli
