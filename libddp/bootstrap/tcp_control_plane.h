/// \file
/// TcpControlPlane: exchanges and failures relayed by the hub on rank 0.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "libddp/bootstrap/control_plane.h"
#include "libddp/bootstrap/hub_client.h"

namespace ddp {

class TcpControlPlane : public ControlPlane {
 public:
  explicit TcpControlPlane(std::shared_ptr<HubClient> client);

  std::vector<std::string> exchange(std::string_view topic,
                                    std::string_view message,
                                    Deadline deadline) override;
  void announce_failure(ErrorKind kind,
                        std::string_view text) noexcept override;
  std::optional<Failure> failure() const override;
  int on_failure(FailureCallback callback) override;
  void remove_callback(int id) override;
  void leave() noexcept override;

 private:
  std::string who_is_missing(std::string_view topic, std::int64_t turn);

  /// Shared with the store of the same rank.
  std::shared_ptr<HubClient> client_;
  std::mutex mutex_;
  std::map<std::string, std::int64_t, std::less<>> next_turn_;
};

}  // namespace ddp
