#include "kernels/elementwise.h"

#include "kernels/check.h"
#include "kernels/twins.h"

namespace ddp {
namespace {

void expect_pairs(const char* operation, std::span<const TensorPair> pairs,
                  StreamView stream) {
  for (const TensorPair& pair : pairs) {
    expect_tensor(operation, pair.destination, stream);
    expect_tensor(operation, pair.source, stream);
    expect_floating(operation, pair.destination.dtype);
    expect_floating(operation, pair.source.dtype);
    DDP_EXPECT(pair.destination.numel == pair.source.numel, InvalidArgument,
               operation, ": the destination has ", pair.destination.numel,
               " elements but the source ", pair.source.numel,
               "; pass tensors of equal length");
  }
}

void expect_tensors(const char* operation, std::span<const TensorView> tensors,
                    StreamView stream) {
  for (const TensorView& tensor : tensors) {
    expect_tensor(operation, tensor, stream);
    expect_floating(operation, tensor.dtype);
  }
}

}  // namespace

void fill_zero(std::span<const TensorView> tensors, StreamView stream) {
  for (const TensorView& tensor : tensors)
    expect_tensor("fill_zero", tensor, stream);
  if (stream.device.is_cuda()) return cuda::fill_zero(tensors, stream);
  cpu::fill_zero(tensors);
}

void cast(std::span<const TensorPair> pairs, StreamView stream) {
  expect_pairs("cast", pairs, stream);
  if (stream.device.is_cuda()) return cuda::cast(pairs, stream);
  cpu::cast(pairs);
}

void accumulate(std::span<const TensorPair> pairs, StreamView stream) {
  expect_pairs("accumulate", pairs, stream);
  if (stream.device.is_cuda()) return cuda::accumulate(pairs, stream);
  cpu::accumulate(pairs);
}

void scale(std::span<const TensorView> tensors, double factor,
           StreamView stream) {
  expect_tensors("scale", tensors, stream);
  if (stream.device.is_cuda()) return cuda::scale(tensors, factor, stream);
  cpu::scale(tensors, factor);
}

void scale_checked(std::span<const TensorView> tensors, const float* factor,
                   std::int32_t* non_finite, StreamView stream) {
  expect_tensors("scale_checked", tensors, stream);
  DDP_EXPECT(factor != nullptr && non_finite != nullptr, InvalidArgument,
             "scale_checked: factor or non_finite is null; pass device memory");
  if (stream.device.is_cuda())
    return cuda::scale_checked(tensors, factor, non_finite, stream);
  cpu::scale_checked(tensors, factor, non_finite);
}

void sum(TensorView destination, const PeerList& sources, DType source_dtype,
         StreamView stream) {
  expect_tensor("sum", destination, stream);
  expect_floating("sum", destination.dtype);
  expect_floating("sum", source_dtype);
  expect_peers("sum", "source", sources);
  if (stream.device.is_cuda())
    return cuda::sum(destination, sources, source_dtype, stream);
  cpu::sum(destination, sources, source_dtype);
}

void checksum(TensorView tensor, std::uint64_t seed, std::uint64_t* result,
              StreamView stream) {
  expect_tensor("checksum", tensor, stream);
  DDP_EXPECT(result != nullptr, InvalidArgument,
             "checksum: result is null; pass 8 bytes of device memory");
  if (stream.device.is_cuda())
    return cuda::checksum(tensor, seed, result, stream);
  cpu::checksum(tensor, seed, result);
}

}  // namespace ddp
