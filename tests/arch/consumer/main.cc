#include <shardtool/layout/axis_expr.h>

#include <cstdio>

// Prints the part of each of 4 devices of 10 heads.
int main() {
  const shardtool::mesh::Mesh mesh({{"tp", 4}});
  const auto heads = shardtool::layout::split(10, {{"tp"}});
  for (int rank = 0; rank < 4; ++rank) {
    const auto local = shardtool::layout::evaluate(heads, mesh, rank);
    std::printf("%lld ", static_cast<long long>(local.local_size()));
  }
}
