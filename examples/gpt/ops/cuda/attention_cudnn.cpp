#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <tuple>

#include "examples/gpt/ops/cuda/attention.h"

// The frontend, built with NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING, looks up
// cuDNN here; so a program starts where cuDNN is missing.
namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace gpt::cuda {
namespace {

namespace fe = cudnn_frontend;

using Graph = std::shared_ptr<fe::graph::Graph>;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using Strides = std::vector<std::int64_t>;

/// Names of the graphs' tensors.
enum Uid : std::int64_t { kQ = 1, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv };

using ShapeKey =
    std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

ShapeKey key_of(const AttentionShape& s) {
  return {s.batch, s.sequence, s.heads, s.head_size};
}

std::vector<std::int64_t> dimensions(const AttentionShape& s) {
  return {s.batch, s.heads, s.sequence, s.head_size};
}
/// Of q, k and v inside qkv.
Strides qkv_strides(const AttentionShape& s) {
  const std::int64_t width = s.heads * s.head_size;
  return {s.sequence * 3 * width, s.head_size, 3 * width, 1};
}
Strides out_strides(const AttentionShape& s) {
  const std::int64_t width = s.heads * s.head_size;
  return {s.sequence * width, s.head_size, width, 1};
}

Tensor input(const Graph& graph, Uid uid, const char* name,
             const AttentionShape& shape, const Strides& strides) {
  return graph->tensor(fe::graph::Tensor_attributes()
                           .set_name(name)
                           .set_uid(uid)
                           .set_dim(dimensions(shape))
                           .set_stride(strides));
}

void output(const Tensor& tensor, Uid uid, const AttentionShape& shape,
            const Strides& strides) {
  tensor->set_output(true)
      .set_uid(uid)
      .set_dim(dimensions(shape))
      .set_stride(strides);
}

Graph new_graph() {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return graph;
}

float scale_of(const AttentionShape& s) {
  return 1.0f / std::sqrt(static_cast<float>(s.head_size));
}

std::vector<std::int64_t> lse_dimensions(const AttentionShape& s) {
  return {s.batch, s.heads, s.sequence, 1};
}
Strides lse_strides(const AttentionShape& s) {
  return {s.heads * s.sequence, s.sequence, 1, 1};
}

Graph forward_graph(const AttentionShape& s) {
  Graph graph = new_graph();
  const auto [out, lse] = graph->sdpa(input(graph, kQ, "q", s, qkv_strides(s)),
                                      input(graph, kK, "k", s, qkv_strides(s)),
                                      input(graph, kV, "v", s, qkv_strides(s)),
                                      fe::graph::SDPA_attributes()
                                          .set_name("attention")
                                          .set_generate_stats(true)
                                          .set_causal_mask(true)
                                          .set_attn_scale(scale_of(s)));
  output(out, kOut, s, out_strides(s));
  lse->set_output(true)
      .set_uid(kLse)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim(lse_dimensions(s))
      .set_stride(lse_strides(s));
  return graph;
}

Graph backward_graph(const AttentionShape& s, bool deterministic) {
  Graph graph = new_graph();
  const Tensor lse = graph->tensor(fe::graph::Tensor_attributes()
                                       .set_name("lse")
                                       .set_uid(kLse)
                                       .set_data_type(fe::DataType_t::FLOAT)
                                       .set_dim(lse_dimensions(s))
                                       .set_stride(lse_strides(s)));
  const auto [dq, dk, dv] =
      graph->sdpa_backward(input(graph, kQ, "q", s, qkv_strides(s)),
                           input(graph, kK, "k", s, qkv_strides(s)),
                           input(graph, kV, "v", s, qkv_strides(s)),
                           input(graph, kOut, "out", s, out_strides(s)),
                           input(graph, kDout, "dout", s, out_strides(s)), lse,
                           fe::graph::SDPA_backward_attributes()
                               .set_name("attention_backward")
                               .set_causal_mask(true)
                               .set_attn_scale(scale_of(s))
                               .set_deterministic_algorithm(deterministic));
  output(dq, kDq, s, qkv_strides(s));
  output(dk, kDk, s, qkv_strides(s));
  output(dv, kDv, s, qkv_strides(s));
  return graph;
}

/// One graph a shape; null where cuDNN refused the shape.
class GraphCache {
 public:
  template <typename Make>
  fe::graph::Graph* get(cudnnHandle_t handle, const AttentionShape& shape,
                        const Make& make) {
    const auto [place, is_new] = graphs_.try_emplace(key_of(shape));
    if (is_new) place->second = build(handle, make());
    return place->second.get();
  }

 private:
  /// Null if cuDNN refuses, or if a library that it loads is missing.
  static Graph build(cudnnHandle_t handle, Graph graph) {
    try {
      const auto status =
          graph->build(handle, {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK});
      return status.is_good() ? graph : nullptr;
    } catch (const std::runtime_error&) {
      return nullptr;
    }
  }

  std::map<ShapeKey, Graph> graphs_;
};

/// TensorView's element `index` * shape's width: q, k, v in qkv.
void* part(const TensorView& qkv, const AttentionShape& shape, int index) {
  return qkv.slice(index * shape.heads * shape.head_size, 0).data;
}

class CudnnAttention final : public LibraryAttention {
 public:
  CudnnAttention(cudnnHandle_t handle, bool deterministic)
      : handle_(handle), deterministic_(deterministic) {}
  ~CudnnAttention() override { fe::detail::destroy_handle(handle_); }

  bool forward(Context& context, const AttentionForward& args) override {
    const AttentionShape& shape = args.shape;
    fe::graph::Graph* const graph = forward_graphs_.get(
        handle_, shape, [&] { return forward_graph(shape); });
    if (!graph) return false;
    return execute(context, *graph,
                   {{kQ, part(args.qkv, shape, 0)},
                    {kK, part(args.qkv, shape, 1)},
                    {kV, part(args.qkv, shape, 2)},
                    {kOut, args.out.data},
                    {kLse, args.lse.data}});
  }

  bool backward(Context& context, const AttentionBackward& args) override {
    const AttentionShape& shape = args.shape;
    fe::graph::Graph* const graph = backward_graphs_.get(
        handle_, shape, [&] { return backward_graph(shape, deterministic_); });
    if (!graph) return false;
    return execute(context, *graph,
                   {{kQ, part(args.qkv, shape, 0)},
                    {kK, part(args.qkv, shape, 1)},
                    {kV, part(args.qkv, shape, 2)},
                    {kOut, args.out.data},
                    {kLse, args.lse.data},
                    {kDout, args.dout.data},
                    {kDq, part(args.dqkv, shape, 0)},
                    {kDk, part(args.dqkv, shape, 1)},
                    {kDv, part(args.dqkv, shape, 2)}});
  }

 private:
  bool execute(Context& context, fe::graph::Graph& graph,
               std::unordered_map<std::int64_t, void*> tensors) {
    std::int64_t bytes = 0;
    if (graph.get_workspace_size(bytes).is_bad()) return false;
    void* const workspace =
        context.scratch.get(static_cast<std::size_t>(bytes));
    auto status = graph.execute(handle_, tensors, workspace);
    DDP_EXPECT(status.is_good(), DeviceError, "cuDNN ",
               fe::detail::get_backend_version(),
               " failed to run attention: ", status.get_message(),
               "; set GPT_ATTENTION=flash to do without it");
    return true;
  }

  cudnnHandle_t handle_;
  bool deterministic_;
  GraphCache forward_graphs_, backward_graphs_;
};

/// cuDNN by the name that the loader knows, else where the build found it.
void* open_cudnn() {
  void* handle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  return handle ? handle : dlopen(GPT_CUDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

std::unique_ptr<LibraryAttention> make_cudnn_attention(ddp::StreamView stream,
                                                       bool deterministic) {
  // Loaded once and never unloaded: handles may live until exit.
  static void* const library = open_cudnn();
  if (!library) return nullptr;
  fe::cudnn_dlhandle = library;
  // Of several CUDA runtimes on a machine, the frontend shall use ours.
  const std::string runtime =
      "libcudart.so." + std::to_string(CUDART_VERSION / 1000);
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime.c_str(), 0);
  cudnnHandle_t handle = nullptr;
  if (fe::detail::get_backend_version() < 90000 ||
      fe::detail::create_handle(&handle) != CUDNN_STATUS_SUCCESS)
    return nullptr;
  auto attention = std::make_unique<CudnnAttention>(handle, deterministic);
  if (fe::detail::set_stream(handle,
                             static_cast<cudaStream_t>(stream.handle)) !=
      CUDNN_STATUS_SUCCESS)
    return nullptr;
  return attention;
}

}  // namespace gpt::cuda
