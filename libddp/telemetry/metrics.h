/// \file
/// Metrics: counters and gauges, as text that Prometheus reads.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace ddp {

/// A view of a number that only grows, such as bytes sent. Any thread may add.
class Counter {
 public:
  explicit Counter(std::atomic<double>& cell) : cell_(&cell) {}
  /// REQUIRES: amount >= 0.
  void add(double amount = 1) const noexcept {
    cell_->fetch_add(amount, std::memory_order_relaxed);
  }
  double value() const noexcept {
    return cell_->load(std::memory_order_relaxed);
  }

 private:
  std::atomic<double>* cell_;
};

/// A view of a number that goes up and down, such as the loss. Any thread may
/// set it.
class Gauge {
 public:
  explicit Gauge(std::atomic<double>& cell) : cell_(&cell) {}
  void set(double value) const noexcept {
    cell_->store(value, std::memory_order_relaxed);
  }
  double value() const noexcept {
    return cell_->load(std::memory_order_relaxed);
  }

 private:
  std::atomic<double>* cell_;
};

/// Pairs such as {"rank", "3"}; their order does not matter.
using Labels = std::map<std::string, std::string>;

/// Owns the numbers; thread-safe. Look one up once and keep the view, which is
/// valid as long as the registry: using it takes one atomic operation and no
/// lock.
///
/// Memory is bounded: beyond `most_series` all new series share one number
/// that is not shown, and `libddp_dropped_series` counts their look-ups.
class Metrics {
 public:
  explicit Metrics(std::size_t most_series = 4096)
      : most_series_(most_series) {}
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// The one with this name and these labels, made if need be. `help` of the
  /// first call is shown. Throws InvalidArgument if a name is none in
  /// Prometheus's sense, or already is of the other type.
  Counter counter(const std::string& name, const std::string& help,
                  const Labels& labels = {});
  Gauge gauge(const std::string& name, const std::string& help,
              const Labels& labels = {});

  /// Everything, sorted by name and labels, in the text exposition format,
  /// version 0.0.4.
  std::string prometheus() const;

 private:
  struct Family {
    std::string help;
    std::string_view type;
    std::map<std::string, std::atomic<double>> series;  // by labels as text
  };

  std::atomic<double>& find(const std::string& name, const std::string& help,
                            const Labels& labels, std::string_view type);

  const std::size_t most_series_;
  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;
  std::size_t series_ = 0;
  std::size_t dropped_ = 0;
  std::atomic<double> overflow_ = 0;
};

}  // namespace ddp
