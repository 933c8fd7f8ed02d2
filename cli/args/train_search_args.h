#pragma once

#include "cli/args/search_args.h"
#include "lib/api/planning/search/training_search.h"

namespace shardtool::cli {

/// Converts the arguments of `plan search --train`. Throws kUsage, also for flags that are about
/// serving, and the errors of api::load_profile and api::read_graph.
api::TrainSearchOptions to_train_search_options(const SearchArgs& args);
/// Throws kUsage if flags of training are given without --train.
void require_no_training(const SearchArgs& args);
/// Returns the flags of training of `plan search`. `args` must outlive them.
std::vector<Argument> train_search_arguments(SearchArgs& args);

}  // namespace shardtool::cli
