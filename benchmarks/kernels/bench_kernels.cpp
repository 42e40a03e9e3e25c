// Speed of the kernels beside the copy bandwidth of the same run.
//   bench_kernels [--device cpu|cuda] [--numel N] [--repeat R]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmarks/kernels/probe.h"
#include "kernels/core/error.h"
#include "kernels/elementwise.h"
#include "kernels/update.h"

namespace ddp::bench {
namespace {

struct Options {
  std::string device = "cpu";
  std::int64_t numel = 0;  ///< 0: 16 Mi on the CPU, 124 M on a GPU
  int repeat = 20;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string key = arguments[i];
    DDP_EXPECT(i + 1 < count, InvalidArgument, "bench_kernels: ", key,
               " needs a value");
    const std::string value = arguments[i + 1];
    if (key == "--device") {
      options.device = value;
    } else if (key == "--numel") {
      options.numel = std::stoll(value);
    } else if (key == "--repeat") {
      options.repeat = std::stoi(value);
    } else {
      throw InvalidArgument(
          concat("bench_kernels: unknown option ", key,
                 "; options are --device cpu|cuda, --numel N, --repeat R"));
    }
  }
  DDP_EXPECT(options.device == "cpu" || options.device == "cuda",
             InvalidArgument, "bench_kernels: --device is ", options.device,
             "; pass cpu or cuda");
  if (options.numel == 0)
    options.numel =
        options.device == "cpu" ? std::int64_t{1} << 24 : 124'000'000;
  DDP_EXPECT(options.numel > 0 && options.repeat > 0, InvalidArgument,
             "bench_kernels: --numel and --repeat must be above 0");
  return options;
}

class Bench {
 public:
  Bench(Probe& probe, const Options& options)
      : probe_(probe), options_(options) {
    const auto bytes = static_cast<std::size_t>(options.numel) * 4;
    for (auto& buffer : buffers_) buffer = probe.allocate(bytes);
    control_ = probe.allocate(sizeof(StepControl));
    part_ = probe.allocate(sizeof(NormPart));
    StepControl control;
    control.time = 10;
    probe.write(control_.get(), &control, sizeof control);
    std::printf("%s, %lld elements, %d repeats\n", probe.machine().c_str(),
                static_cast<long long>(options.numel), options.repeat);
    std::printf("%-18s %10s %10s %8s %8s %8s\n", "kernel", "median us",
                "p90 us", "MB", "GB/s", "of copy");
  }

  void run() {
    const auto bytes = static_cast<std::size_t>(options_.numel) * 4;
    measure("copy", 8, [&] { probe_.copy(at(0), at(1), bytes); });
    triad();
    adam_in("adamw_fp32", DType::kFloat32, 28);
    adam_in("adamw_bf16_master", DType::kBFloat16, 30);
    norm_of("norm_1_source", 1);
    norm_of("norm_2_sources", 2);
    cast_to_bf16();
    std::uint64_t* result = static_cast<std::uint64_t*>(part_.get());
    measure("checksum_fp32", 4, [&] {
      checksum(view(0, DType::kFloat32), 1, result, probe_.stream());
    });
  }

 private:
  void* at(int buffer) const { return buffers_[buffer].get(); }

  TensorView view(int buffer, DType dtype) const {
    return {at(buffer), options_.numel, dtype, probe_.stream().device};
  }

  /// STREAM's triad (McCalpin 1995), a = b + s * c; only on the CPU.
  void triad() {
    if (options_.device != "cpu") return;
    auto* a = static_cast<float*>(at(0));
    const auto* b = static_cast<const float*>(at(1));
    const auto* c = static_cast<const float*>(at(2));
    const std::int64_t n = options_.numel;
    measure("stream_triad", 12, [=] {
#pragma omp parallel for simd schedule(static)
      for (std::int64_t i = 0; i < n; ++i) a[i] = b[i] + 3.0f * c[i];
    });
  }

  UpdateRun run_with(int sources) const {
    UpdateRun run;
    run.weight = PeerList::one(at(0));
    run.moment1 = at(1);
    run.moment2 = at(2);
    run.gradient = PeerList::one(at(3));
    if (sources == 2) run.gradient.data[run.gradient.count++] = at(4);
    run.numel = options_.numel;
    return run;
  }

  void adam_in(const char* name, DType weight, double bytes) {
    UpdateRun run = run_with(1);
    if (weight != DType::kFloat32) run.master = at(4);
    const UpdateTable table({run}, weight, DType::kFloat32,
                            probe_.stream().device);
    const AdamStep step{.weight_decay = 0.1f};
    measure(name, bytes, [&] {
      adam(table, {&step, 1}, static_cast<StepControl*>(control_.get()), {},
           probe_.stream());
    });
  }

  void norm_of(const char* name, int sources) {
    const UpdateTable table({run_with(sources)}, DType::kFloat32,
                            DType::kFloat32, probe_.stream().device);
    measure(name, 4.0 * sources, [&] {
      norm(table, NormKind::kTwo, 2, static_cast<NormPart*>(part_.get()),
           probe_.stream());
    });
  }

  void cast_to_bf16() {
    const TensorPair pair{view(0, DType::kBFloat16), view(1, DType::kFloat32)};
    measure("cast_fp32_bf16", 6, [&] { cast({&pair, 1}, probe_.stream()); });
  }

  void measure(const char* name, double bytes_per_element,
               const std::function<void()>& work) {
    std::vector<double> seconds = probe_.time(work, options_.repeat);
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    const double p90 = seconds[(seconds.size() - 1) * 9 / 10];
    const double bytes =
        bytes_per_element * static_cast<double>(options_.numel);
    const double rate = bytes / median / 1e9;
    if (copy_rate_ == 0) copy_rate_ = rate;
    const double percent = 100 * rate / copy_rate_;
    std::printf("%-18s %10.1f %10.1f %8.0f %8.1f %7.1f%%\n", name, median * 1e6,
                p90 * 1e6, bytes / 1e6, rate, percent);
    char line[512];
    std::snprintf(line, sizeof line,
                  "{\"kernel\":\"%s\",\"device\":\"%s\",\"machine\":\"%s\","
                  "\"numel\":%lld,\"bytes\":%.0f,\"median_us\":%.2f,"
                  "\"p90_us\":%.2f,\"gb_per_s\":%.2f,"
                  "\"percent_of_copy\":%.2f}",
                  name, options_.device.c_str(), probe_.machine().c_str(),
                  static_cast<long long>(options_.numel), bytes, median * 1e6,
                  p90 * 1e6, rate, percent);
    json_ += line;
    json_ += '\n';
  }

 public:
  const std::string& json() const { return json_; }

 private:
  Probe& probe_;
  Options options_;
  std::shared_ptr<void> buffers_[5];
  std::shared_ptr<void> control_;
  std::shared_ptr<void> part_;
  double copy_rate_ = 0;
  std::string json_;
};

}  // namespace
}  // namespace ddp::bench

int main(int count, char** arguments) {
  try {
    const auto options = ddp::bench::parse(count, arguments);
    const auto probe = options.device == "cpu" ? ddp::bench::make_cpu_probe()
                                               : ddp::bench::make_cuda_probe();
    ddp::bench::Bench bench(*probe, options);
    bench.run();
    std::printf("%s", bench.json().c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
