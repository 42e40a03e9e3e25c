#include "examples/gpt/ops/cuda/matmul.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "examples/gpt/ops/cuda/check.h"
#include "libddp/device/event.h"
#include "libddp/device/stream.h"

namespace gpt::cuda {
namespace {

// What NVIDIA recommends for Hopper.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr int kCandidates = 12;
constexpr int kTimedRuns = 5;

cudaDataType_t cuda_type(ddp::DType dtype) {
  return dtype == ddp::DType::kBFloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtEpilogue_t lt_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::kBias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::kGeluAuxBias: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::kGeluBackward: return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::kBiasGradient: return CUBLASLT_EPILOGUE_BGRADA;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

bool uses_bias(Epilogue epilogue) {
  return epilogue == Epilogue::kBias || epilogue == Epilogue::kGeluAuxBias ||
         epilogue == Epilogue::kBiasGradient;
}

bool uses_aux(Epilogue epilogue) {
  return epilogue == Epilogue::kGeluAuxBias ||
         epilogue == Epilogue::kGeluBackward;
}

/// Largest power of two, up to 256, of which the address is a multiple.
std::uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer) | 256;
  return static_cast<std::uint32_t>(address & (~address + 1));
}

template <typename Value>
void set(cublasLtMatmulDesc_t descriptor,
         cublasLtMatmulDescAttributes_t attribute, Value value) {
  GPT_CUBLAS(cublasLtMatmulDescSetAttribute(descriptor, attribute, &value,
                                            sizeof value));
}

template <typename Value>
void set(cublasLtMatmulPreference_t preference,
         cublasLtMatmulPreferenceAttributes_t attribute, Value value) {
  GPT_CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value,
                                                  sizeof value));
}

cublasLtMatrixLayout_t layout(ddp::DType dtype, std::int64_t rows,
                              std::int64_t columns, std::int64_t leading) {
  cublasLtMatrixLayout_t made = nullptr;
  GPT_CUBLAS(cublasLtMatrixLayoutCreate(
      &made, cuda_type(dtype), static_cast<std::uint64_t>(rows),
      static_cast<std::uint64_t>(columns), leading));
  return made;
}

}  // namespace

/// All on which the choice of an algorithm may depend.
struct Matmul::Key {
  std::int64_t m, n, k, lda, ldb, ldd;
  bool transpose_a, transpose_b;
  ddp::DType dtype, result_dtype;
  Epilogue epilogue;
  std::uint32_t align_a, align_b, align_d, align_bias, align_aux;

  auto operator<=>(const Key&) const = default;
};

struct Matmul::Plan {
  cublasLtMatmulDesc_t descriptor = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  /// Best first; empty if there is none.
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  bool tuned = false;

  ~Plan() {
    if (descriptor) cublasLtMatmulDescDestroy(descriptor);
    for (const cublasLtMatrixLayout_t matrix : {a, b, d})
      if (matrix) cublasLtMatrixLayoutDestroy(matrix);
  }
};

Matmul::Matmul(ddp::StreamView stream, bool tune)
    : stream_(stream), tune_(tune) {
  workspace_ = ddp::Buffer::allocate(kWorkspaceBytes, stream.device);
  GPT_CUBLAS(cublasLtCreate(&handle_));
}

Matmul::~Matmul() {
  plans_.clear();
  if (handle_) cublasLtDestroy(handle_);
}

bool Matmul::try_run(const Product& product) {
  Plan& plan = plan_for(product);
  if (plan.algorithms.empty()) return false;
  // Only a product that overwrites, and reads nothing that it writes, may be
  // repeated for timing.
  if (tune_ && !plan.tuned && !product.accumulate && product.aux != product.d)
    plan.tuned = tune(plan, product);
  // The heuristics may offer what the library at run time then refuses.
  while (!plan.algorithms.empty()) {
    const cublasStatus_t status =
        launch(plan, plan.algorithms.front(), product);
    if (status == CUBLAS_STATUS_SUCCESS) return true;
    if (status != CUBLAS_STATUS_NOT_SUPPORTED &&
        status != CUBLAS_STATUS_INVALID_VALUE)
      GPT_CUBLAS(status);
    plan.algorithms.erase(plan.algorithms.begin());
  }
  return false;
}

void Matmul::run(const Product& product) {
  const bool done = try_run(product);
  DDP_EXPECT(done, Unavailable, "cuBLASLt ", cublasLtGetVersion(),
             " has no algorithm for a product of [", product.m, ", ", product.k,
             "] and [", product.k, ", ", product.n, "] in ",
             name(product.dtype), " with result in ",
             name(product.result_dtype), " and leading dimensions ",
             product.lda, ", ", product.ldb, ", ", product.ldd,
             "; use widths that are multiples of 8");
}

Matmul::Plan& Matmul::plan_for(const Product& p) {
  const Key key{p.m,
                p.n,
                p.k,
                p.lda,
                p.ldb,
                p.ldd,
                p.transpose_a,
                p.transpose_b,
                p.dtype,
                p.result_dtype,
                p.epilogue,
                alignment_of(p.a),
                alignment_of(p.b),
                alignment_of(p.d),
                uses_bias(p.epilogue) ? alignment_of(p.bias) : 0,
                uses_aux(p.epilogue) ? alignment_of(p.aux) : 0};
  std::unique_ptr<Plan>& plan = plans_[key];
  if (!plan) plan = make_plan(key, p);
  return *plan;
}

std::unique_ptr<Matmul::Plan> Matmul::make_plan(const Key& key,
                                                const Product& p) {
  auto plan = std::make_unique<Plan>();
  GPT_CUBLAS(cublasLtMatmulDescCreate(&plan->descriptor, CUBLAS_COMPUTE_32F,
                                      CUDA_R_32F));
  set(plan->descriptor, CUBLASLT_MATMUL_DESC_TRANSA,
      std::int32_t{p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(plan->descriptor, CUBLASLT_MATMUL_DESC_TRANSB,
      std::int32_t{p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N});
  set(plan->descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE, lt_epilogue(p.epilogue));
  if (uses_bias(p.epilogue)) {
    // A bias has the operands' type, the gradient of one the result's.
    const bool gradient = p.epilogue == Epilogue::kBiasGradient;
    set(plan->descriptor, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
        std::int32_t{cuda_type(gradient ? p.result_dtype : p.dtype)});
    set(plan->descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  }
  if (uses_aux(p.epilogue)) {
    set(plan->descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux);
    set(plan->descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ldd);
  }
  plan->a = layout(p.dtype, p.transpose_a ? p.k : p.m,
                   p.transpose_a ? p.m : p.k, p.lda);
  plan->b = layout(p.dtype, p.transpose_b ? p.n : p.k,
                   p.transpose_b ? p.k : p.n, p.ldb);
  plan->d = layout(p.result_dtype, p.m, p.n, p.ldd);

  cublasLtMatmulPreference_t preference = nullptr;
  GPT_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                        cublasStatus_t (*)(cublasLtMatmulPreference_t)>
      owner(preference, cublasLtMatmulPreferenceDestroy);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
      std::uint64_t{workspace_.bytes()});
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.align_a);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.align_b);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.align_d);
  set(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.align_d);

  cublasLtMatmulHeuristicResult_t found[kCandidates];
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, plan->descriptor, plan->a, plan->b, plan->d, plan->d, preference,
      kCandidates, found, &count);
  if (status == CUBLAS_STATUS_SUCCESS)
    for (int i = 0; i < count; ++i)
      if (found[i].state == CUBLAS_STATUS_SUCCESS)
        plan->algorithms.push_back(found[i].algo);
  return plan;
}

bool Matmul::tune(Plan& plan, const Product& product) {
  ddp::Event start(stream_.device, true), end(stream_.device, true);
  float best_ms = std::numeric_limits<float>::infinity();
  std::size_t best = 0;
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) {
    bool runs = true;
    for (int run = 0; run <= kTimedRuns && runs; ++run) {
      if (run == 1) start.record(stream_);  // the first run warms up
      runs = launch(plan, plan.algorithms[i], product) == CUBLAS_STATUS_SUCCESS;
    }
    if (!runs) continue;
    end.record(stream_);
    end.synchronize();
    const float ms = ddp::Event::elapsed_ms(start, end);
    if (ms < best_ms) {
      best_ms = ms;
      best = i;
    }
  }
  std::swap(plan.algorithms[0], plan.algorithms[best]);
  return true;
}

cublasStatus_t Matmul::launch(const Plan& plan,
                              const cublasLtMatmulAlgo_t& algorithm,
                              const Product& p) {
  if (uses_bias(p.epilogue))
    set(plan.descriptor, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
  if (uses_aux(p.epilogue))
    set(plan.descriptor, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.aux);
  const float alpha = 1, beta = p.accumulate ? 1 : 0;
  return cublasLtMatmul(handle_, plan.descriptor, &alpha, p.a, plan.a, p.b,
                        plan.b, &beta, p.d, plan.d, p.d, plan.d, &algorithm,
                        workspace_.data(), workspace_.bytes(),
                        static_cast<cudaStream_t>(stream_.handle));
}

}  // namespace gpt::cuda
