#include "kernels/cuda/dispatch.cuh"
#include "kernels/cuda/list.cuh"
#include "kernels/twins.h"

namespace ddp::cuda {
namespace {

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64, DType::kBFloat16,
                            DType::kFloat16};

template <typename T, typename F>
struct CastOp {
  template <int kCount>
  __device__ void operator()(Count<kCount>, T* to, const F* from) const {
    const Pack<F, kCount> pack = load<kCount>(from);
    if constexpr (std::is_same_v<T, F>) {
      store(to, pack);  // the bits, even of NaN
    } else {
      store(to, narrow<T>(widen<formula::Wide<T, F>>(pack)));
    }
  }
};

template <typename T, typename F>
struct AccumulateOp {
  template <int kCount>
  __device__ void operator()(Count<kCount>, T* to, const F* from) const {
    using S = formula::Wide<T, F>;
    Pack<S, kCount> sum = widen<S>(load<kCount>(to));
    add(sum, widen<S>(load<kCount>(from)));
    store(to, narrow<T>(sum));
  }
};

template <typename T>
struct ScaleOp {
  formula::Wide<T> factor;

  template <int kCount>
  __device__ void operator()(Count<kCount>, T* to, const T*) const {
    using S = formula::Wide<T>;
    Pack<S, kCount> x = widen<S>(load<kCount>(to));
#pragma unroll
    for (int i = 0; i < kCount; ++i) x.at[i] *= factor;
    store(to, narrow<T>(x));
  }
};

template <typename T>
struct ScaleCheckedOp {
  const float* factor;
  std::int32_t* non_finite;

  template <int kCount>
  __device__ void operator()(Count<kCount>, T* to, const T*) const {
    using S = formula::Wide<T>;
    const S by = static_cast<S>(__ldg(factor));
    Pack<S, kCount> x = widen<S>(load<kCount>(to));
#pragma unroll
    for (int i = 0; i < kCount; ++i) x.at[i] *= by;
    const Pack<T, kCount> rounded = narrow<T>(x);
    store(to, rounded);
    bool finite = true;
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      finite = finite && formula::is_finite(formula::widen<S>(rounded.at[i]));
    if (!finite) atomicExch(non_finite, 1);
  }
};

/// Launches `op` over those pairs whose types are T and F.
template <typename T, typename F, typename Op>
void for_pairs(std::span<const TensorPair> pairs, DType to, DType from,
               const Op& op, StreamView stream) {
  TensorList list;
  for (const TensorPair& pair : pairs) {
    const TensorView& d = pair.destination;
    const TensorView& s = pair.source;
    if (d.dtype != to || s.dtype != from || d.numel == 0) continue;
    const int head = common_head(d.data, sizeof(T), s.data, sizeof(F));
    if (append(list, d.data, s.data, d.numel, head)) continue;
    launch_list<T, F>(list, op, stream);
    list.count = 0;
    append(list, d.data, s.data, d.numel, head);
  }
  launch_list<T, F>(list, op, stream);
}

bool has_types(std::span<const TensorPair> pairs, DType to, DType from) {
  return std::any_of(pairs.begin(), pairs.end(), [&](const TensorPair& pair) {
    return pair.destination.dtype == to && pair.source.dtype == from;
  });
}

template <template <typename, typename> typename Op>
void pairwise(std::span<const TensorPair> pairs, StreamView stream) {
  const CurrentDevice current(stream.device);
  for (const DType to : kTypes)
    for (const DType from : kTypes)
      if (has_types(pairs, to, from))
        with_types(to, from, [&](auto a, auto b) {
          using T = typename decltype(a)::type;
          using F = typename decltype(b)::type;
          for_pairs<T, F>(pairs, to, from, Op<T, F>{}, stream);
        });
}

/// Calls launch(type, pairs of that type with themselves).
template <typename Launch>
void for_types(std::span<const TensorView> tensors, const Launch& launch) {
  for (const DType dtype : kTypes) {
    std::vector<TensorPair> pairs;
    for (const TensorView& tensor : tensors)
      if (tensor.dtype == dtype && tensor.numel > 0)
        pairs.push_back({tensor, tensor});
    if (pairs.empty()) continue;
    with_type(dtype, [&](auto type) { launch(type, dtype, pairs); });
  }
}

template <typename T>
struct ZeroOp {
  template <int kCount>
  __device__ void operator()(Count<kCount>, T* to, const T*) const {
    store(to, Pack<T, kCount>{});
  }
};

/// Whether a tensor is made of whole aligned elements of `size` bytes.
bool is_made_of(std::size_t size, const TensorView& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data) % size == 0 &&
         tensor.bytes() % size == 0;
}

/// Clears tensors as lists of T.
template <typename T>
class ZeroList {
 public:
  explicit ZeroList(StreamView stream) : stream_(stream) {}
  void add(const TensorView& tensor) {
    const auto numel = static_cast<std::int64_t>(tensor.bytes() / sizeof(T));
    const int head =
        common_head(tensor.data, sizeof(T), tensor.data, sizeof(T));
    if (append(list_, tensor.data, tensor.data, numel, head)) return;
    launch();
    append(list_, tensor.data, tensor.data, numel, head);
  }
  void launch() {
    launch_list<T, T>(list_, ZeroOp<T>{}, stream_);
    list_.count = 0;
  }

 private:
  TensorList list_;
  StreamView stream_;
};

__global__ void __launch_bounds__(kThreads)
    zero_bytes_kernel(unsigned char* data, std::int64_t bytes) {
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
       i < bytes; i += std::int64_t{kThreads} * gridDim.x)
    data[i] = 0;
}

template <typename T, typename G>
__global__ void __launch_bounds__(kThreads)
    sum_kernel(T* to, const __grid_constant__ PeerList sources,
               std::int64_t numel, std::int64_t head) {
  using S = formula::Wide<T, G>;
  constexpr int kWidth = kVectorElements;
  const auto add = [&](auto count, std::int64_t i) {
    constexpr int kCount = decltype(count)::value;
    store(to + i, narrow<T>(load_sum<S, kCount, G>(sources, i)));
  };
  const std::int64_t vectors = (numel - head) / kWidth * kWidth;
  const std::int64_t thread = blockIdx.x * std::int64_t{kThreads} + threadIdx.x;
  const std::int64_t threads = std::int64_t{kThreads} * gridDim.x;
#pragma unroll 2
  for (std::int64_t i = thread * kWidth; i < vectors; i += threads * kWidth)
    add(Count<kWidth>{}, head + i);
  for (std::int64_t i = thread; i < numel - vectors; i += threads)
    add(Count<1>{}, i < head ? i : i + vectors);
}

template <typename T, typename G>
void launch_sum(const TensorView& destination, const PeerList& sources,
                StreamView stream) {
  int head =
      common_head(destination.data, sizeof(T), destination.data, sizeof(T));
  int period = sizeof(T) == 8 ? 2 : 4;
  for (int s = 0; s < sources.count; ++s) {
    const int both =
        common_head(destination.data, sizeof(T), sources.data[s], sizeof(G));
    const int source_period = sizeof(G) == 8 ? 2 : 4;
    if (head < 0 || both < 0 ||
        (period == 4 && source_period == 4 && both != head)) {
      head = -1;
    } else if (source_period > period) {
      head = both;
      period = source_period;
    }
  }
  const std::int64_t numel = destination.numel;
  const std::int64_t lead =
      head < 0 ? numel : std::min<std::int64_t>(head, numel);
  static Residency residency;
  auto* kernel = &sum_kernel<T, G>;
  const unsigned grid = grid_of((numel + kThreads - 1) / kThreads,
                                residency.blocks(kernel, stream.device));
  kernel<<<grid, kThreads, 0, handle(stream)>>>(destination.as<T>(), sources,
                                                numel, lead);
  DDP_CUDA_LAUNCHED();
}

}  // namespace

void fill_zero(std::span<const TensorView> tensors, StreamView stream) {
  const CurrentDevice current(stream.device);
  ZeroList<float> words(stream);
  ZeroList<bfloat16> halves(stream);
  for (const TensorView& tensor : tensors) {
    if (tensor.numel == 0) continue;
    if (is_made_of(sizeof(float), tensor)) {
      words.add(tensor);
    } else if (is_made_of(sizeof(bfloat16), tensor)) {
      halves.add(tensor);
    } else {  // odd bytes: rare enough for a launch each
      const auto bytes = static_cast<std::int64_t>(tensor.bytes());
      const std::int64_t blocks = (bytes + kThreads - 1) / kThreads;
      zero_bytes_kernel<<<grid_of(blocks, 1024), kThreads, 0, handle(stream)>>>(
          tensor.as<unsigned char>(), bytes);
      DDP_CUDA_LAUNCHED();
    }
  }
  words.launch();
  halves.launch();
}

void cast(std::span<const TensorPair> pairs, StreamView stream) {
  pairwise<CastOp>(pairs, stream);
}

void accumulate(std::span<const TensorPair> pairs, StreamView stream) {
  pairwise<AccumulateOp>(pairs, stream);
}

void scale(std::span<const TensorView> tensors, double factor,
           StreamView stream) {
  const CurrentDevice current(stream.device);
  for_types(tensors, [&](auto type, DType dtype, const auto& pairs) {
    using T = typename decltype(type)::type;
    const ScaleOp<T> op{static_cast<formula::Wide<T>>(factor)};
    for_pairs<T, T>(pairs, dtype, dtype, op, stream);
  });
}

void scale_checked(std::span<const TensorView> tensors, const float* factor,
                   std::int32_t* non_finite, StreamView stream) {
  const CurrentDevice current(stream.device);
  for_types(tensors, [&](auto type, DType dtype, const auto& pairs) {
    using T = typename decltype(type)::type;
    const ScaleCheckedOp<T> op{factor, non_finite};
    for_pairs<T, T>(pairs, dtype, dtype, op, stream);
  });
}

void sum(TensorView destination, const PeerList& sources, DType source_dtype,
         StreamView stream) {
  if (destination.numel == 0) return;
  const CurrentDevice current(stream.device);
  with_types(destination.dtype, source_dtype, [&](auto to, auto from) {
    launch_sum<typename decltype(to)::type, typename decltype(from)::type>(
        destination, sources, stream);
  });
}

}  // namespace ddp::cuda
