/// \file
/// TcpStore: the keys that the hub on rank 0 keeps.
#pragma once

#include <memory>

#include "libddp/bootstrap/hub_client.h"
#include "libddp/bootstrap/store.h"

namespace ddp {

/// Every call is one round trip. A key with its value may have
/// kMaxMessageBytes. When the hub is gone, calls throw PeerFailure.
class TcpStore : public Store {
 public:
  /// `round_trip` bounds the calls that take no deadline.
  explicit TcpStore(std::shared_ptr<HubClient> client,
                    Milliseconds round_trip = std::chrono::minutes(1));

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;
  std::optional<std::string> find(std::string_view key) override;
  std::int64_t add(std::string_view key, std::int64_t amount) override;

 private:
  std::string call(FrameType type, std::string_view body,
                   std::string_view what);

  /// Shared with the control plane of the same rank.
  std::shared_ptr<HubClient> client_;
  Milliseconds round_trip_;
};

}  // namespace ddp
