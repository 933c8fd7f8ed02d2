#include "cli/args/search_args.h"

namespace shardtool::cli {

std::vector<Argument> search_arguments(SearchArgs& args) {
  return {
      {.name = "--devices",
       .value = "N,N,...",
       .help = "of search: numbers of devices to choose from",
       .target = &args.devices},
      {.name = "--concurrency",
       .value = "N,N,...",
       .help = "of search: numbers of clients, each of which waits for its answer",
       .target = &args.concurrency},
      {.name = "--output-len",
       .value = "N",
       .help = "of search: tokens of an answer; --prompt-len are those of a prompt",
       .target = &args.output_len},
      {.name = "--objective",
       .value = "NAME",
       .help = "of search: tokens per second and device (throughput, the default) or of one client "
               "(user), time of an answer (latency), throughput that keeps --ttft and --tpot "
               "(goodput), or price of a token (cost)",
       .target = &args.objective,
       .choices = {"throughput", "user", "latency", "goodput", "cost"}},
      {.name = "--ttft",
       .value = "MS",
       .help = "of search: the longest time to the first token",
       .target = &args.ttft},
      {.name = "--tpot",
       .value = "MS",
       .help = "of search: the longest time per output token",
       .target = &args.tpot},
      {.name = "--max-price",
       .value = "AMOUNT",
       .help = "of search: the highest price of all devices per hour",
       .target = &args.max_price,
       .advanced = true},
      {.name = "--survive",
       .value = "N",
       .help = "of search: replicas that are left when N devices are lost hold all clients",
       .target = &args.survive,
       .advanced = true},
  };
}

}  // namespace shardtool::cli
