#include "lib/tutorial/shardings/system.h"

#include <fmt/format.h>

namespace shardtool::tutorial {

template <Number T>
void System<T>::load_checkpoint(const Parameters<T>& whole) {
  placements_ = place(whole);
  held_.clear();
  tape_.reset();
  for (const auto& [name, array] : whole) {
    held_[name] = cut(array, placements_.at(name), device_id());
  }
}

template <Number T>
Matrix<T> System<T>::forward(const Matrix<T>& x) {
  Pass<T> pass = run(x);
  tape_ = std::move(pass.tape);
  return std::move(pass.y);
}

template <Number T>
Parameters<T> System<T>::backward(const Matrix<T>& g) {
  if (!tape_) throw Error(ErrorCode::kInternal, "backward comes after forward");
  return pull_back(*tape_, g);
}

template <Number T>
void System<T>::inference_loop(const InputStream<T>& input_stream,
                               const OutputStream<T>& output_stream) {
  const bool leads = device_id() == 0;
  while (true) {
    const std::optional<Matrix<T>> x = leads ? input_stream() : std::nullopt;
    const std::optional<Matrix<T>> part = share_out(x);
    if (!part) return;
    const std::optional<Matrix<T>> y = collect(infer(*part), leads ? x->rows() : 0);
    if (y) output_stream(*y);
  }
}

/// Distributes the parts of x, or the end of the stream, from device 0.
template <Number T>
std::optional<Matrix<T>> System<T>::share_out(const std::optional<Matrix<T>>& x) {
  if (device_id() != 0) return device_.receive_next(0);
  if (!x) {
    for (int to = 1; to < num_devices(); ++to) device_.send_end(to);
    return std::nullopt;
  }
  const MatrixPlacement placement = input(x->rows());
  for (int to = 1; to < num_devices(); ++to) device_.send(to, cut(*x, placement, to));
  return cut(*x, placement, 0);
}

/// Collects y on device 0; the other devices get nullopt.
template <Number T>
std::optional<Matrix<T>> System<T>::collect(const Matrix<T>& part, i64 batch) {
  if (device_id() != 0) {
    device_.send(0, part);
    return std::nullopt;
  }
  std::vector<Matrix<T>> parts{part};
  for (int from = 1; from < num_devices(); ++from) parts.push_back(device_.receive(from));
  return assembled(parts, output(batch));
}

template <Number T>
TwoLayers two_layers(const Parameters<T>& whole) {
  const auto layers = layers_of(whole);
  if (layers.size() != 2) {
    throw Error(ErrorCode::kUnsupported,
                fmt::format("this sharding is for two layers, the model has {}", layers.size()))
        .help("the pipeline takes any number of layers");
  }
  return {layers[0].weights.rows(), layers[0].weights.columns(), layers[1].weights.columns()};
}

template <Number T>
Placements all_placed(const Parameters<T>& whole, const MatrixPlacement& placement) {
  Placements placements;
  for (const auto& [name, array] : whole) placements[name] = placement;
  return placements;
}

template class System<Field>;
template class System<double>;
template class System<float>;
template TwoLayers two_layers(const Parameters<Field>&);
template TwoLayers two_layers(const Parameters<double>&);
template TwoLayers two_layers(const Parameters<float>&);
template Placements all_placed(const Parameters<Field>&, const MatrixPlacement&);
template Placements all_placed(const Parameters<double>&, const MatrixPlacement&);
template Placements all_placed(const Parameters<float>&, const MatrixPlacement&);

}  // namespace shardtool::tutorial
