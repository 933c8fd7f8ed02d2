#include "kernels/native/cublaslt.h"
#include "lib/base/dynamic_library.h"

namespace shardtool::kernels {

struct CublasLt::State {};

std::string found_cublaslt(const std::string&) {
  throw engine_missing("this program was built without cuBLASLt")
      .help("build it where cublasLt.h is, with SHARDTOOL_CUDA");
}

CublasLt::CublasLt(Accelerator& accelerator, const std::string& file) : accelerator_(accelerator) {
  found_cublaslt(file);
}

CublasLt::~CublasLt() = default;

void CublasLt::multiply(const Gemm&, gpu::Stream) {}

}  // namespace shardtool::kernels
