#include "libddp/engine/data_parallel.h"

#include <utility>

#include "libddp/device/stream.h"
#include "libddp/engine/impl.h"

namespace ddp {

DataParallel::DataParallel(const World& world,
                           std::vector<ParameterSpec> parameters,
                           DataParallelOptions options)
    : impl_(std::make_unique<Impl>(world, std::move(parameters),
                                   std::move(options))) {}
DataParallel::~DataParallel() {
  if (impl_) impl_->leave_note();
}
DataParallel::DataParallel(DataParallel&&) noexcept = default;

int DataParallel::parameter_count() const noexcept {
  return static_cast<int>(impl_->plan.parameters().size());
}
const ParameterSpec& DataParallel::parameter(int index) const {
  return impl_->plan.parameters().at(index);
}
int DataParallel::index_of(const std::string& name) const {
  return impl_->index_of(name);
}
TensorView DataParallel::weight(int parameter) const {
  return impl_->weight(parameter);
}

void DataParallel::initialize(
    const std::function<void(int, std::span<float>)>& fill, int root) {
  impl_->guarded("initialize", [&] { impl_->initialize(fill, root); });
}
void DataParallel::broadcast_weights(int root) {
  impl_->guarded("broadcast_weights", [&] { impl_->broadcast_weights(root); });
}
std::vector<float> DataParallel::read_weight(int parameter) {
  return impl_->guarded("read_weight",
                        [&] { return impl_->read_weight(parameter); });
}
std::vector<float> DataParallel::read_gradient(int parameter) {
  return impl_->guarded("read_gradient",
                        [&] { return impl_->read_gradient(parameter); });
}

GradientTarget DataParallel::grad(int parameter, StreamView stream) {
  return impl_->guarded("grad", [&] { return impl_->grad(parameter, stream); });
}
void DataParallel::grad_ready(int parameter, StreamView stream) {
  impl_->guarded("grad_ready", [&] { impl_->grad_ready(parameter, stream); });
}
void DataParallel::finish_backward(StreamView stream) {
  impl_->expect_stream(stream, "finish_backward");
  impl_->guarded("finish_backward", [&] { impl_->finish_backward(stream); });
}
void DataParallel::set_gradient_sync(bool enabled) noexcept {
  impl_->sync_enabled = enabled;
}
bool DataParallel::gradient_sync() const noexcept {
  return impl_->sync_enabled;
}
void DataParallel::sync_gradients(StreamView stream) {
  impl_->expect_stream(stream, "sync_gradients");
  impl_->guarded("sync_gradients", [&] { impl_->sync_gradients(stream); });
}
void DataParallel::step(const StepInput& input, StreamView stream) {
  impl_->expect_stream(stream, "step");
  impl_->guarded("step", [&] { impl_->step(input, stream); });
}
void DataParallel::zero_grad(StreamView stream) {
  impl_->expect_stream(stream, "zero_grad");
  impl_->zero_grad(stream);
}
void DataParallel::join(StreamView stream) {
  impl_->expect_stream(stream, "join");
  impl_->guarded("join", [&] { impl_->join(stream); });
}

std::vector<StepReport> DataParallel::poll_reports() {
  impl_->collect(/*wait=*/false);
  return std::exchange(impl_->reports, {});
}
std::vector<StepReport> DataParallel::wait_reports() {
  impl_->guarded("wait_reports", [&] {
    impl_->collect(/*wait=*/true);
    impl_->judge(/*all=*/true);
  });
  return std::exchange(impl_->reports, {});
}
bool DataParallel::should_stop() const noexcept { return impl_->stop_seen; }

std::vector<OptimizerConfig>& DataParallel::hyper_parameters() noexcept {
  return impl_->optimizer->groups();
}
void DataParallel::unfreeze(int parameter) {
  impl_->guarded("unfreeze", [&] { impl_->unfreeze(parameter); });
}

OverlapStatistics DataParallel::overlap() const {
  OverlapStatistics result;
  int index = 0;
  for (const Reducer::BucketTimes& times : impl_->reducer->times()) {
    result.bytes_total += times.bytes;
    if (times.early) result.bytes_launched_early += times.bytes;
    result.buckets.push_back({index++, times.bytes, times.launched_ms});
  }
  if (!impl_->reports.empty())
    result.exposed_ms = impl_->reports.back().exposed_ms;
  return result;
}
std::string DataParallel::describe() const { return impl_->describe(); }

std::vector<double> DataParallel::average(std::span<const double> values) {
  return impl_->guarded("average", [&] {
    const Device device = impl_->world.device();
    std::vector<double> result(values.begin(), values.end());
    Buffer buffer = Buffer::allocate(result.size() * sizeof(double), device);
    Stream stream(device);
    copy_bytes(buffer.data(), result.data(), buffer.bytes(), stream);
    impl_->communicator
        ->all_reduce(buffer.view(0, static_cast<std::int64_t>(result.size()),
                                 DType::kFloat64),
                     ReduceOp::kAverage, stream)
        .block(stream);
    copy_bytes(result.data(), buffer.data(), buffer.bytes(), stream);
    synchronize(stream);
    return result;
  });
}

Communicator& DataParallel::communicator() noexcept {
  return *impl_->communicator;
}

}  // namespace ddp
