// A linear layer whose outputs are cut over two devices, with a bias, and one whose weights are
// those of an embedding. Each device is a thread of this process.
#include <shardtool/comm/embedded.h>
#include <shardtool/tutorial/layers/column_parallel_linear.h>

#include <cstdio>
#include <string>

namespace {

using namespace shardtool;
using Matrix = tutorial::Matrix<double>;
using Device = tutorial::Device<double>;

std::string text(const Matrix& matrix) {
  std::string line;
  for (const double value : matrix.values()) line += " " + std::to_string(static_cast<int>(value));
  return line;
}

/// y = x W + b: device 0 has columns 0 to 2 of W and b, device 1 columns 3 and 4.
void run_linear(Device& device) {
  const Matrix x(1, 2, {1, 2});
  const Matrix weights(2, 5, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  const Matrix bias(1, 5, {1, 1, 1, 1, 1});
  tutorial::ColumnParallelLinear<double> layer(device, weights, bias);

  const Matrix y_part = layer.forward(x);            // no communication
  const Matrix y = layer.gathered(y_part);           // one all_gather
  const auto gradients = layer.backward(x, y_part);  // one all_reduce, for dL/dx
  if (device.device_id() != 0) return;
  std::printf("device 0 has y%s of%s\n", text(y_part).c_str(), text(y).c_str());
  std::printf("dL/db%s, dL/dx%s\n", text(*gradients.bias).c_str(), text(gradients.x).c_str());
}

/// The head of a model with tied weights: y = x E^T, where the devices share the vocabulary.
void run_tied(Device& device) {
  const Matrix table(3, 2, {1, 0, 0, 1, 1, 1});
  tutorial::VocabularyEmbedding<double> embedding(device, table);
  const Matrix x = embedding.forward({2, 0});
  tutorial::ColumnParallelLinear<double> head(device, embedding, std::nullopt);
  const Matrix logits = head.gathered(head.forward(x));
  if (device.device_id() == 0) std::printf("tied logits%s\n", text(logits).c_str());
}

}  // namespace

int main() {
  comm::run_embedded(2, [](comm::Communicator& communicator) {
    Device device(communicator);
    run_linear(device);
    run_tied(device);
  });
  return 0;
}
