#include <shardtool/api/transform.h>
#include <shardtool/base/error.h>
#include <shardtool/layout/axis_expr.h>

#include <cstdio>

namespace {

/// Prints the number of heads that each of 4 ranks gets of 10.
void print_shares() {
  const shardtool::mesh::Mesh mesh({{"tp", 4}});
  const auto heads = shardtool::layout::split(10, {{"tp"}});
  for (int rank = 0; rank < 4; ++rank) {
    const auto local = shardtool::layout::evaluate(heads, mesh, rank);
    std::printf("%lld ", static_cast<long long>(local.local_size()));
  }
  std::printf("\n");
}

/// Splits a checkpoint over a mesh such as "tp=4", like `shardtool split SRC -o OUT --mesh MESH`.
void split(const char* source, const char* output, const char* mesh) {
  shardtool::api::SplitOptions options;
  options.source = source;
  options.mapping.mesh = shardtool::mesh::parse_mesh(mesh);
  options.write.output = output;
  const auto report = shardtool::api::split(options);
  std::printf("%lld tensors for %lld ranks in %s\n", static_cast<long long>(report.plan.tensors),
              static_cast<long long>(report.plan.ranks), report.output.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    print_shares();
    return 0;
  }
  try {
    split(argv[1], argv[2], argv[3]);
  } catch (const shardtool::Error& error) {
    std::fprintf(stderr, "error[%s]: %s\n", std::string(error.id()).c_str(), error.what());
    return error.exit_status();
  }
  return 0;
}
