#include "tests/kernels/op_digests.h"

int main() {
  shardtool::kernels::print_digests();
}
