#include "tests/unit/gpt/parameter_store.h"

#include "kernels/core/half.h"
#include "libddp/device/stream.h"

namespace gpt {

void upload(ddp::TensorView to, std::span<const float> values,
            ddp::StreamView stream) {
  DDP_EXPECT(to.numel == static_cast<std::int64_t>(values.size()),
             InvalidArgument, "a tensor of ", to.numel, " elements, but ",
             values.size(), " values");
  std::vector<ddp::bfloat16> narrow;
  const void* from = values.data();
  if (to.dtype == ddp::DType::kBFloat16) {
    for (float value : values) narrow.push_back(ddp::to_bfloat16(value));
    from = narrow.data();
  }
  ddp::copy_bytes(to.data, from, to.bytes(), stream);
  ddp::synchronize(stream);
}

std::vector<float> download(ddp::TensorView from, ddp::StreamView stream) {
  std::vector<float> values(static_cast<std::size_t>(from.numel));
  if (from.dtype == ddp::DType::kFloat32) {
    ddp::copy_bytes(values.data(), from.data, from.bytes(), stream);
    ddp::synchronize(stream);
    return values;
  }
  std::vector<ddp::bfloat16> narrow(values.size());
  ddp::copy_bytes(narrow.data(), from.data, from.bytes(), stream);
  ddp::synchronize(stream);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = ddp::to_float(narrow[i]);
  return values;
}

ParameterStore::ParameterStore(std::vector<ddp::ParameterSpec> specs,
                               ddp::DType gradient, ddp::StreamView stream)
    : specs_(std::move(specs)), gradient_dtype_(gradient), stream_(stream) {
  for (const ddp::ParameterSpec& each : specs_) {
    std::int64_t elements = 1;
    for (std::int64_t size : each.shape) elements *= size;
    const auto n = static_cast<std::size_t>(elements);
    weights_.push_back(
        ddp::Buffer::allocate(n * size_of(each.dtype), stream.device));
    gradients_.push_back(
        ddp::Buffer::allocate(n * size_of(gradient), stream.device));
    // What a first write leaves untouched shows up as NaN.
    upload(gradients_.back().view(0, elements, gradient),
           std::vector<float>(n, __builtin_nanf("")), stream);
  }
  written_.assign(specs_.size(), false);
}

const ddp::ParameterSpec& ParameterStore::spec(int parameter) const {
  return specs_.at(static_cast<std::size_t>(parameter));
}

ddp::TensorView ParameterStore::weight(int parameter) const {
  const ddp::Buffer& buffer = weights_.at(static_cast<std::size_t>(parameter));
  const ddp::DType dtype = spec(parameter).dtype;
  return buffer.view(
      0, static_cast<std::int64_t>(buffer.bytes() / size_of(dtype)), dtype);
}

ddp::GradientTarget ParameterStore::grad(int parameter, ddp::StreamView) {
  const auto index = static_cast<std::size_t>(parameter);
  const ddp::Buffer& buffer = gradients_.at(index);
  const auto elements =
      static_cast<std::int64_t>(buffer.bytes() / size_of(gradient_dtype_));
  const bool accumulate = written_.at(index);
  written_.at(index) = true;
  return {buffer.view(0, elements, gradient_dtype_), accumulate};
}

void ParameterStore::grad_ready(int parameter, ddp::StreamView) {
  ready_.push_back(parameter);
}

void ParameterStore::set_weight(int parameter, std::span<const float> values) {
  upload(weight(parameter), values, stream_);
}

std::vector<float> ParameterStore::gradient(int parameter) const {
  const ddp::Buffer& buffer =
      gradients_.at(static_cast<std::size_t>(parameter));
  return download(
      buffer.view(0,
                  static_cast<std::int64_t>(buffer.bytes() /
                                            size_of(gradient_dtype_)),
                  gradient_dtype_),
      stream_);
}

void ParameterStore::reset() {
  written_.assign(specs_.size(), false);
  ready_.clear();
}

}  // namespace gpt
