// plan_bench SHARDTOOL FOLDER [ROUNDS]
//
// Times `plan` and `plan search` on headers of published sizes (holes for data), and two planners
// by themselves: that of moves with separate layouts for every tensor, fully sharded over 1024
// devices, moved to 1536; and the exact program that chooses how each layer is trained.

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "lib/layout/layout.h"
#include "lib/plan/layer_ways.h"
#include "lib/plan/reshard.h"
#include "lib/store/local/file.h"
#include "tests/api/published_models.h"
#include "tests/bench/command_sample.h"
#include "tests/bench/llama_checkpoint.h"

namespace {

namespace fs = std::filesystem;
using namespace shardtool;
using namespace shardtool::bench;

void write_model(const std::string& folder, const test::PublishedModel& model) {
  write_header(folder, model.tensors);
  store::write_new_file(folder + "/config.json", model.config);
}

double report(const std::string& name, const std::string& command, int rounds) {
  std::vector<double> walls;
  std::vector<double> cpus;
  i64 peak = 0;
  for (int round = 0; round < rounds; ++round) {
    const Sample sample = run("exec " + command + " > /dev/null 2>&1");
    walls.push_back(sample.wall);
    cpus.push_back(sample.cpu);
    peak = std::max(peak, sample.peak_rss);
  }
  fmt::print("{:<58} {:>8.0f} ms {:>8.0f} ms CPU {:>7.0f} MiB\n", name, 1e3 * median(walls),
             1e3 * median(cpus), static_cast<double>(peak) / (1 << 20));
  return median(cpus);
}

/// Cuts rows over all devices.
layout::Layout fsdp(const Shape& shape, i64 devices) {
  return layout::Layout(
      mesh::Mesh({{"fsdp", devices}}), shape,
      {{layout::split(shape[0], {{"fsdp"}}), 1, {}}, {layout::whole(shape[1]), 1, {}}});
}

/// Returns the seconds to plan the move of the weight matrices of `layers` layers of Llama-3-405B
/// from 1024 devices to 1536; no two tensors share a layout object.
double plan_fsdp(i64 layers, int rounds) {
  std::vector<layout::Layout> from;
  std::vector<layout::Layout> to;
  for (i64 layer = 0; layer < layers; ++layer) {
    for (const Shape& shape :
         {Shape{16384, 16384}, Shape{1024, 16384}, Shape{1024, 16384}, Shape{16384, 16384},
          Shape{53248, 16384}, Shape{53248, 16384}, Shape{16384, 53248}}) {
      from.push_back(fsdp(shape, 1024));
      to.push_back(fsdp(shape, 1536));
    }
  }
  std::vector<plan::ReshardTensor> tensors;
  for (size_t t = 0; t < from.size(); ++t) {
    tensors.push_back(
        {"w", 16, {&from[t].holders(), from[t].ranks()}, {&to[t].holders(), to[t].ranks()}});
  }
  plan::TrafficOptions options;
  options.from_devices = 1024;
  options.to_devices = 1536;
  std::vector<double> seconds;
  i64 transfers = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::clock_t start = std::clock();  // one thread: CPU time equals the run time
    transfers = plan::plan_reshard(tensors, options).transfers;
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  fmt::print("{:<58} {:>8.0f} ms CPU, {} transfers\n",
             fmt::format("FSDP 1024 -> 1536, {} tensors, the planner alone", tensors.size()),
             1e3 * median(seconds), transfers);
  return median(seconds);
}

/// Times the choice among 128 ways for each of 126 layers, whose bytes fall as their times rise.
void plan_layers(int rounds) {
  constexpr i64 kLayers = 126, kWays = 128;
  std::minstd_rand random(1);
  const auto step = [&random](i64 most) {
    return std::uniform_int_distribution(i64{1}, most)(random);
  };
  std::vector<std::vector<plan::LayerWay>> layers(kLayers);
  i64 least = 0, most = 0;
  for (auto& ways : layers) {
    plan::LayerWay way{step(1'000'000), 1'000'000};
    least += way.bytes;
    for (i64 w = 0; w < kWays; ++w) {
      ways.push_back(way);
      way = {way.bytes + step(1'000'000), way.us - static_cast<double>(step(7'000))};
    }
    most += ways.back().bytes;
  }
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const std::clock_t start = std::clock();
    const auto found = plan::fastest_ways(layers, least + (most - least) / 3);
    seconds.push_back(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    if (!found) std::exit(1);
  }
  fmt::print("{:<58} {:>8.0f} ms CPU\n",
             fmt::format("{} layers, {} ways each, the program alone", kLayers, kWays),
             1e3 * median(seconds));
}

/// Times searches of all layouts of Llama-3-405B.
void search(const std::string& tool, const std::string& model, int rounds) {
  const auto run_search = [&](const std::string& name, const std::string& flags) {
    report(name, fmt::format("{} plan search {} --profile h100-sxm {}", tool, model, flags),
           rounds);
  };
  const std::string serve = "--devices 64 --prompt-len 1024 --output-len 1024 ";
  run_search("search of Llama-3-405B, 64 devices, 64 clients", serve + "--concurrency 64");
  run_search("the same for 16, 64 and 256 clients, 8 to 64 devices",
             "--devices 8,16,32,64 --concurrency 16,64,256");
  run_search("the same for 10 requests per second", serve + "--request-rate 10");
  run_search("the same for 64 clients, when a device is lost",
             serve + "--concurrency 64 --survive 1");
  run_search("search to train it on 512 devices",
             "--train --devices 512 --sequence 8192 --batch 512");
}

void print_ratio(double one, double two) {
  fmt::print("{:<58} {:>8.2f} times\n", "  twice the tensors", two / one);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: plan_bench SHARDTOOL FOLDER [ROUNDS]\n");
    return 2;
  }
  const std::string tool = argv[1];
  const std::string folder = argv[2];
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  fs::remove_all(folder);
  fs::create_directories(folder);
  const test::PublishedModel deepseek = test::deepseek_v3();
  write_model(folder + "/405b", test::llama_3_405b());
  write_model(folder + "/v3", deepseek);
  for (const i64 layers : {30, 60}) {
    constexpr i64 kPerLayer = 256 * 6;
    const auto name = fmt::format("{}/experts{}", folder, layers);
    write_deepseek_header(name, layers * kPerLayer);
    store::write_new_file(name + "/config.json", deepseek.config);
  }
  fmt::print("median of {} runs, peak memory\n", rounds);
  report("report of Llama-3-405B, tp=8", fmt::format("{} plan {}/405b --tp 8", tool, folder),
         rounds);
  report("report of DeepSeek-V3, ep=8", fmt::format("{} plan {}/v3 --ep 8", tool, folder), rounds);
  report(fmt::format("DeepSeek-V3, {} tensors, ep=32 -> ep=48", deepseek.tensors.size()),
         fmt::format("{} plan {}/v3 --ep 32 --to-mesh ep=48", tool, folder), rounds);
  const auto experts = [&](i64 layers) {
    return report(fmt::format("experts of {} layers, ep=32 -> ep=48", layers),
                  fmt::format("{} plan {}/experts{} --ep 32 --to-mesh ep=48", tool, folder, layers),
                  rounds);
  };
  const double few = experts(30);
  print_ratio(few, experts(60));
  const double one = plan_fsdp(126, rounds);
  print_ratio(one, plan_fsdp(252, rounds));
  search(tool, folder + "/405b", rounds);
  plan_layers(rounds);
  fs::remove_all(folder);
  return 0;
}
