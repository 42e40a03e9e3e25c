#include "examples/gpt/ops/cuda/dispatch.cuh"
#include "examples/gpt/ops/cuda/elementwise.h"
#include "examples/gpt/ops/cuda/gelu.cuh"

namespace gpt::cuda {
namespace {

constexpr int kThreads = 256;

unsigned blocks_for(std::int64_t threads) {
  return static_cast<unsigned>(ceil_div(threads, kThreads));
}

__device__ std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Gelu {
  __device__ float operator()(float x, float) const { return gelu(x); }
};
struct GeluBackward {
  __device__ float operator()(float gradient, float x) const {
    return gradient * gelu_derivative(x);
  }
};

/// out[i] = function(a[i], b[i]), V elements a thread. `out` may alias.
template <typename T, int V, typename Function>
__global__ void map_kernel(T* out, const T* a, const T* b, std::int64_t packs,
                           Function function) {
  const std::int64_t i = global_thread();
  if (i >= packs) return;
  float x[V], y[V];
  load<V>(a + i * V).unpack(x);
  load<V>(b + i * V).unpack(y);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] = function(x[j], y[j]);
  Pack<T, V> result;
  result.pack(x);
  store<V>(out + i * V, result);
}

template <typename Function>
void map(const Context& context, TensorView out, TensorView a, TensorView b,
         Function function) {
  if (out.numel == 0) return;
  with_access(
      out.dtype, out.numel, {out.data, a.data, b.data},
      [&]<typename T, int V>() {
        const std::int64_t packs = out.numel / V;
        map_kernel<T, V><<<blocks_for(packs), kThreads, 0, context.stream>>>(
            out.as<T>(), a.as<const T>(), b.as<const T>(), packs, function);
      });
  GPT_CUDA(cudaGetLastError());
}

template <typename T, int V>
__global__ void add_bias_kernel(T* matrix, const T* bias, std::int64_t packs,
                                std::int64_t columns) {
  const std::int64_t i = global_thread();
  if (i >= packs) return;
  float x[V], y[V];
  load<V>(matrix + i * V).unpack(x);
  load<V>(bias + i * V % columns).unpack(y);
#pragma unroll
  for (int j = 0; j < V; ++j) x[j] += y[j];
  Pack<T, V> result;
  result.pack(x);
  store<V>(matrix + i * V, result);
}

template <typename T>
__global__ void zero_columns_kernel(T* matrix, std::int64_t rows,
                                    std::int64_t columns, std::int64_t from) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  for (std::int64_t c = from + threadIdx.x; c < columns; c += blockDim.x)
    store_float(matrix + row * columns + c, 0.0f);
}

/// One block; thread sums and their tree have a fixed order.
__global__ void mean_loss_kernel(float* mean, const float* losses,
                                 std::int64_t rows, double count,
                                 bool accumulate) {
  __shared__ double sums[1024];
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < rows; i += blockDim.x)
    sum += losses[i];
  sums[threadIdx.x] = sum;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    const auto value = static_cast<float>(sums[0] / count);
    *mean = accumulate ? *mean + value : value;
  }
}

}  // namespace

void add(const Context& context, TensorView out, TensorView a, TensorView b) {
  map(context, out, a, b, Sum{});
}

void gelu_forward(const Context& context, TensorView out, TensorView in) {
  map(context, out, in, in, Gelu{});
}

void gelu_backward(const Context& context, TensorView gradient, TensorView in) {
  map(context, gradient, gradient, in, GeluBackward{});
}

void add_bias(const Context& context, TensorView matrix, TensorView bias,
              std::int64_t rows, std::int64_t columns) {
  if (rows * columns == 0) return;
  with_access(matrix.dtype, columns, {matrix.data, bias.data},
              [&]<typename T, int V>() {
                const std::int64_t packs = rows * columns / V;
                add_bias_kernel<T, V>
                    <<<blocks_for(packs), kThreads, 0, context.stream>>>(
                        matrix.as<T>(), bias.as<const T>(), packs, columns);
              });
  GPT_CUDA(cudaGetLastError());
}

void copy_padded(const Context& context, TensorView padded, TensorView table,
                 std::int64_t columns) {
  DDP_EXPECT(padded.numel >= table.numel && padded.numel % columns == 0,
             InvalidArgument, "a table of ", table.numel,
             " elements does not fit into a padded one of ", padded.numel,
             " with ", columns, " columns");
  GPT_CUDA(cudaMemcpyAsync(padded.data, table.data, table.bytes(),
                           cudaMemcpyDeviceToDevice, context.stream));
  if (padded.numel > table.numel)
    GPT_CUDA(cudaMemsetAsync(padded.as<char>() + table.bytes(), 0,
                             padded.bytes() - table.bytes(), context.stream));
}

void zero_columns(const Context& context, TensorView matrix, std::int64_t rows,
                  std::int64_t columns, std::int64_t from) {
  if (rows == 0 || from >= columns) return;
  const dim3 threads(32, 8);
  const auto blocks = static_cast<unsigned>(ceil_div(rows, threads.y));
  with_dtype(matrix.dtype, [&]<typename T>() {
    zero_columns_kernel<T><<<blocks, threads, 0, context.stream>>>(
        matrix.as<T>(), rows, columns, from);
  });
  GPT_CUDA(cudaGetLastError());
}

void mean_loss(const Context& context, float* mean, TensorView losses,
               double count, bool accumulate) {
  mean_loss_kernel<<<1, 1024, 0, context.stream>>>(
      mean, losses.as<const float>(), losses.numel, count, accumulate);
  GPT_CUDA(cudaGetLastError());
}

}  // namespace gpt::cuda
