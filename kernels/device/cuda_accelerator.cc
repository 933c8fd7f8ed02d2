#include <cuda_runtime_api.h>

#include <deque>
#include <vector>

#include "kernels/compare/compare_cuda.h"
#include "kernels/device/accelerator.h"
#include "kernels/device/device.h"
#include "kernels/device/launch.h"
#include "kernels/device/require.cuh"
#include "kernels/native/cublaslt.h"
#include "kernels/product/product_cuda.h"
#include "kernels/strided_copy/strided_copy_cuda.h"
#include "lib/base/error.h"

namespace shardtool::kernels {
namespace gpu {
namespace {

/// The overloads below launch works that have a launcher of their own.
template <class Work>
void launch(const Work& work, Stream stream) {
  run(work, stream);
}
void launch(const RowProducts<Field>& work, Stream stream) {
  multiply_rows(work.w, work.map, work.x, work.y, stream);
}
template <class T>
void launch(const RowProducts<T>& work, Stream stream) {
  multiply_rows(work.w, work.x, work.y, stream);
}
void launch(const ColumnProducts<Field>& work, Stream stream) {
  add_columns(work.w, work.map, work.x, work.y, stream);
}
template <class T>
void launch(const ColumnProducts<T>& work, Stream stream) {
  add_columns(work.w, work.x, work.y, stream);
}
template <class T>
void launch(const Comparison<T>& work, Stream stream) {
  compare(work.rows, work.found, stream);
}
void launch(const BoxCopy& work, Stream stream) {
  strided_copy(work.copy, work.src, work.dst, stream);
}

class CudaAccelerator final : public Accelerator {
 public:
  explicit CudaAccelerator(int index) : index_(index) {
    use();
    cudaDeviceProp properties{};
    require(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
    name_ = "GPU " + std::to_string(index) + ": " + properties.name;
    // The destructor does not run after a failure here, so the stream is made last.
    require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
            "cudaStreamCreateWithFlags");
  }
  ~CudaAccelerator() override {
    cudaSetDevice(index_);
    library_.reset();
    cudaStreamSynchronize(stream_);
    for (const cudaEvent_t event : pending_) cudaEventDestroy(event);
    for (const cudaEvent_t event : spare_) cudaEventDestroy(event);
    cudaStreamDestroy(stream_);
  }
  CudaAccelerator(const CudaAccelerator&) = delete;
  CudaAccelerator& operator=(const CudaAccelerator&) = delete;

  std::string backend() const override { return "cuda"; }
  std::string name() const override { return name_; }
  ProductLibrary product_library() override {
    use();
    return open_cublaslt(*this, "", library_);
  }

  std::byte* allocate(size_t bytes) override {
    use();
    void* memory = nullptr;
    if (bytes > 0) require(cudaMalloc(&memory, bytes), "cudaMalloc");
    return static_cast<std::byte*>(memory);
  }
  std::byte* allocate_host(size_t bytes) override {
    use();
    void* memory = nullptr;
    if (bytes > 0) require(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    return static_cast<std::byte*>(memory);
  }
  void release(std::byte* memory) noexcept override {
    cudaSetDevice(index_);
    cudaStreamSynchronize(stream_);
    cudaFree(memory);
  }
  void release_host(std::byte* memory) noexcept override {
    cudaSetDevice(index_);
    cudaStreamSynchronize(stream_);
    cudaFreeHost(memory);
  }

  void upload(const std::byte* from, size_t bytes, std::byte* to) override {
    copy(from, bytes, to, cudaMemcpyHostToDevice);
  }
  void download(const std::byte* from, size_t bytes, std::byte* to) override {
    copy(from, bytes, to, cudaMemcpyDeviceToHost);
  }
  void run(const AnyWork& work) override {
    use();
    std::visit([this](const auto& one) { queue(one); }, work);
  }

  Ticket ticket() override {
    use();
    spare_.push_back(event());
    require(cudaEventRecord(spare_.back(), stream_), "cudaEventRecord");
    pending_.push_back(spare_.back());
    spare_.pop_back();
    return ended_ + pending_.size();
  }
  void wait(Ticket ticket) override {
    use();
    while (ended_ < ticket) {
      require(cudaEventSynchronize(pending_.front()), "cudaEventSynchronize");
      spare_.push_back(pending_.front());
      pending_.pop_front();
      ++ended_;
    }
  }

 private:
  /// The current device is per thread, and another thread may have chosen a different one.
  void use() const { require(cudaSetDevice(index_), "cudaSetDevice"); }

  template <class Work>
  void queue(const Work& work) {
    launch(work, stream_);
  }
  void queue(const NativeProducts& work) { library_->multiply(gemm_of(work), stream_); }

  void copy(const std::byte* from, size_t bytes, std::byte* to, cudaMemcpyKind kind) {
    use();
    require(cudaMemcpyAsync(to, from, bytes, kind, stream_), "cudaMemcpyAsync");
  }

  cudaEvent_t event() {
    cudaEvent_t event = nullptr;
    if (spare_.empty()) {
      require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync),
              "cudaEventCreateWithFlags");
      return event;
    }
    event = spare_.back();
    spare_.pop_back();
    return event;
  }

  const int index_;
  std::string name_;
  Stream stream_ = nullptr;
  std::unique_ptr<CublasLt> library_;
  std::deque<cudaEvent_t> pending_;  ///< events of the tickets after `ended_`
  std::vector<cudaEvent_t> spare_;
  Ticket ended_ = 0;
};

}  // namespace
}  // namespace gpu

std::unique_ptr<Accelerator> open_accelerator(int index) {
  require_gpu(device_state(), index);
  return std::make_unique<gpu::CudaAccelerator>(index);
}

}  // namespace shardtool::kernels
