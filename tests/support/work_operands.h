#pragma once

#include <variant>
#include <vector>

#include "kernels/device/any_work.h"

/// Addresses of all memory that a work names, for the emulated accelerator.
namespace shardtool::test {

using Operands = std::vector<const void*>;

template <template <class> class Products, class T>
Operands operands_of_products(const Products<T>& work) {
  return {work.w.bytes, work.x.data, work.y.data};
}
template <class T>
Operands operands(const kernels::RowProducts<T>& work) {
  return operands_of_products(work);
}
template <class T>
Operands operands(const kernels::ColumnProducts<T>& work) {
  return operands_of_products(work);
}
template <class T>
Operands operands(const kernels::ScaleRows<T>& work) {
  return {work.x.data, work.factor, work.y.data};
}
template <class T>
Operands operands(const kernels::Comparison<T>& work) {
  return {work.rows.a.data, work.rows.b.data, work.rows.scale, work.found};
}
template <class T>
Operands operands(const kernels::SquareRows<T>& work) {
  return {work.x.data, work.squares};
}
inline Operands operands(const kernels::RootMeanSquare& work) {
  return {work.squares, work.root};
}
template <class T>
Operands operands(const kernels::CombineAll<T>& work) {
  return {work.a, work.b, work.y};
}
template <class T>
Operands operands(const kernels::AddToRows<T>& work) {
  return {work.y.data, work.summand};
}
inline Operands operands(const kernels::EncodeFloats& work) {
  return {work.values, work.elements};
}
inline Operands operands(const kernels::NativeProducts& work) {
  return {work.w.bytes, work.x.bytes, work.y.data};
}
inline Operands operands(const kernels::BoxCopy& work) {
  return {work.src, work.dst};
}
inline Operands operands(const kernels::DecodeResidues& work) {
  return {work.elements, work.residues};
}
template <class T>
Operands operands(const kernels::DecodeNumbers<T>& work) {
  return {work.elements, work.values};
}
template <class T>
Operands operands(const kernels::Fill<T>& work) {
  return {work.data};
}
template <class T>
Operands operands(const kernels::FoldParts<T>& work) {
  Operands all(work.part.begin(), work.part.begin() + work.parts);
  all.push_back(work.y);
  return all;
}
template <class T>
Operands operands(const kernels::NormRows<T>& work) {
  return {work.x.data, work.weight, work.bias, work.y.data};
}
template <class T>
Operands operands(const kernels::RotateHeads<T>& work) {
  return {work.x.data, work.cos, work.sin, work.y.data};
}
template <class T>
Operands operands(const kernels::AttendHeads<T>& work) {
  return {work.sinks,
          work.slopes,
          work.gates,
          work.biases.data,
          work.bias_of,
          work.key_biases.data,
          work.key_bias_of,
          work.bucket_of,
          work.queries.data,
          work.keys.data,
          work.values.data,
          work.key_of,
          work.value_of,
          work.scores,
          work.y.data,
          work.entry_keys.data,
          work.entry_values.data,
          work.entry_key_of,
          work.entry_value_of,
          work.entry_gates};
}
template <class T>
Operands operands(const kernels::IndexRows<T>& work) {
  return {work.queries.data, work.keys.data, work.weights.data, work.gates};
}
template <class T>
Operands operands(const kernels::ConvolveRows<T>& work) {
  return {work.x.data, work.weight, work.bias, work.past, work.y.data};
}
template <class T>
Operands operands(const kernels::RecurHeads<T>& work) {
  return {work.queries.data, work.keys.data, work.values.data, work.decays.data,
          work.gates.data,   work.query_of,  work.key_of,      work.skips,
          work.first,        work.states,    work.y.data};
}
template <class T>
Operands operands(const kernels::ActivateAll<T>& work) {
  return {work.x, work.up, work.y};
}
template <class T>
Operands operands(const kernels::RouteRows<T>& work) {
  return {work.scores.data, work.correction, work.gates.data, work.chosen,
          work.gaps,        work.given,      work.counts};
}
template <class T>
Operands operands(const kernels::WeighRows<T>& work) {
  return {work.x.data, work.weight, work.y.data};
}
inline Operands operands(const kernels::RouteToAll& work) {
  return {work.scores.data, work.correction, work.more, work.gates.data};
}

inline Operands operands(const kernels::AnyWork& work) {
  return std::visit([](const auto& one) { return operands(one); }, work);
}

}  // namespace shardtool::test
