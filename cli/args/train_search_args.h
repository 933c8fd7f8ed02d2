#pragma once

#include "cli/args/search_args.h"
#include "lib/api/planning/search/training_search.h"

namespace shardtool::cli {

/// Converts the arguments of `plan search --train`. Throws kUsage, and the errors of
/// api::load_profile and api::read_graph.
api::TrainSearchOptions to_train_search_options(const SearchArgs& args);
/// Throws kUsage for a flag of serving with --train, and for one of training without it.
void require_effects(const SearchArgs& args);
/// Returns the flags of training of `plan search`. `args` must outlive them.
std::vector<Argument> train_search_arguments(SearchArgs& args);

}  // namespace shardtool::cli
