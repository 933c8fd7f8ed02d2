#include "lib/tutorial/shardings/pipeline.h"

#include <algorithm>

namespace shardtool::tutorial {
namespace {

/// Collects the gradients of microbatches in order: rows of dx are appended, gradients of
/// parameters are added.
template <Number T>
class Collected {
 public:
  void add(Parameters<T> gradients) {
    for (auto& [name, gradient] : gradients) {
      if (name == kInputGradient) {
        dx_.push_back(std::move(gradient));
        continue;
      }
      const auto [sum, is_new] = sums_.try_emplace(name, gradient);
      if (!is_new) sum->second = plus(std::move(sum->second), gradient);
    }
  }
  Parameters<T> gradients() && {
    if (!dx_.empty()) sums_[std::string(kInputGradient)] = joined<T>(dx_, Axis::kRows);
    return std::move(sums_);
  }

 private:
  Parameters<T> sums_;
  std::vector<Matrix<T>> dx_;
};

}  // namespace

template <Number T>
Placements Pipeline<T>::place(const Parameters<T>& whole) const {
  const i64 n_layers = layers_of(whole).size();
  const Parts stages = parts_of("layers", n_layers, this->num_devices());
  Placements placements;
  for (int stage = 0; stage < this->num_devices(); ++stage) {
    for (i64 layer = stages[stage].begin; layer < stages[stage].end; ++layer) {
      placements[weights_name(layer)] = owned_by(stage);
      placements[bias_name(layer)] = owned_by(stage);
    }
  }
  return placements;
}

template <Number T>
void Pipeline<T>::load_checkpoint(const Parameters<T>& whole) {
  System<T>::load_checkpoint(whole);
  layers_ = layers_of(whole);
  std::erase_if(layers_, [&](const DenseLayer<T>& layer) {
    return this->placements().at(weights_name(layer.number)).owner != this->device_id();
  });
}

template <Number T>
MatrixPlacement Pipeline<T>::input(i64) const {
  return owned_by(0);
}

template <Number T>
MatrixPlacement Pipeline<T>::output(i64) const {
  return owned_by(this->num_devices() - 1);
}

template <Number T>
Matrix<T> Pipeline<T>::microbatch(const Matrix<T>& whole, i64 i) const {
  return slice(whole, Axis::kRows,
               parts_of("rows of the batch", whole.rows(), static_cast<int>(microbatches_))[i]);
}

template <Number T>
Pass<T> Pipeline<T>::run_microbatch(const Matrix<T>& x, i64 i) {
  const int here = this->device_id();
  const Matrix<T> input = is_first() ? microbatch(x, i) : this->device_.receive(here - 1);
  Pass<T> pass = run_layers<T>(layers_, input, this->device_.product());
  if (is_last()) return pass;
  this->device_.send(here + 1, pass.y);
  pass.y = {};
  return pass;
}

template <Number T>
Parameters<T> Pipeline<T>::pull_back_microbatch(const Tape<T>& tape, const Matrix<T>& g, i64 i) {
  const int here = this->device_id();
  const Matrix<T> behind = is_last() ? microbatch(g, i) : this->device_.receive(here + 1);
  Parameters<T> gradients = pull_back_layers<T>(layers_, tape, behind, this->device_.product());
  if (is_first()) return gradients;
  this->device_.send(here - 1, gradients.at(std::string(kInputGradient)));
  gradients.erase(std::string(kInputGradient));
  return gradients;
}

template <Number T>
Pass<T> Pipeline<T>::run(const Matrix<T>& x) {
  Tape<T> tape;
  std::vector<Matrix<T>> outputs;
  for (i64 i = 0; i < microbatches_; ++i) {
    Pass<T> pass = run_microbatch(x, i);
    std::move(pass.tape.begin(), pass.tape.end(), std::back_inserter(tape));
    outputs.push_back(std::move(pass.y));
  }
  return {joined<T>(outputs, Axis::kRows), std::move(tape)};
}

template <Number T>
Parameters<T> Pipeline<T>::pull_back(const Tape<T>& tape, const Matrix<T>& g) {
  Collected<T> collected;
  const auto n_layers = static_cast<i64>(layers_.size());
  for (i64 i = 0; i < microbatches_; ++i) {
    const auto begin = tape.begin() + i * n_layers;
    collected.add(pull_back_microbatch(Tape<T>(begin, begin + n_layers), g, i));
  }
  return std::move(collected).gradients();
}

template <Number T>
typename Pipeline<T>::Result Pipeline<T>::step(const Matrix<T>& x, const Matrix<T>& g,
                                               PipelineSchedule schedule) {
  Result result;
  Collected<T> collected;
  std::vector<Matrix<T>> outputs;
  std::map<i64, Tape<T>> in_flight;
  for (const PipelineStep& step :
       pipeline_steps(schedule, this->num_devices(), this->device_id(), microbatches_)) {
    const comm::Counters before = this->device_.counters();
    if (step.is_forward) {
      Pass<T> pass = run_microbatch(x, step.microbatch);
      outputs.push_back(std::move(pass.y));
      in_flight[step.microbatch] = std::move(pass.tape);
      result.most_in_flight = std::max(result.most_in_flight, static_cast<i64>(in_flight.size()));
      result.forward_counts += this->device_.counts_since(before);
      continue;
    }
    const Tape<T> tape = std::move(in_flight.extract(step.microbatch).mapped());
    collected.add(pull_back_microbatch(tape, g, step.microbatch));
    result.backward_counts += this->device_.counts_since(before);
  }
  result.y = joined<T>(outputs, Axis::kRows);
  result.gradients = std::move(collected).gradients();
  return result;
}

template <Number T>
void Pipeline<T>::inference_loop(const InputStream<T>& input_stream,
                                 const OutputStream<T>& output_stream) {
  if (is_first())
    lead(input_stream, output_stream);
  else
    follow();
}

template <Number T>
void Pipeline<T>::lead(const InputStream<T>& input_stream, const OutputStream<T>& output_stream) {
  const int last = this->num_devices() - 1;
  int under_way = 0;
  while (const std::optional<Matrix<T>> x = input_stream()) {
    const Matrix<T> h = run_layers<T>(layers_, *x, this->device_.product()).y;
    if (last == 0) {
      output_stream(h);
      continue;
    }
    this->device_.send(1, h);
    if (++under_way <= last) continue;
    output_stream(this->device_.receive(last));
    --under_way;
  }
  if (last > 0) this->device_.send_end(1);
  for (; under_way > 0; --under_way) output_stream(this->device_.receive(last));
}

template <Number T>
void Pipeline<T>::follow() {
  const int here = this->device_id();
  while (const std::optional<Matrix<T>> h = this->device_.receive_next(here - 1)) {
    this->device_.send(is_last() ? 0 : here + 1,
                       run_layers<T>(layers_, *h, this->device_.product()).y);
  }
  if (!is_last()) this->device_.send_end(here + 1);
}

template class Pipeline<Field>;
template class Pipeline<double>;
template class Pipeline<float>;

}  // namespace shardtool::tutorial
