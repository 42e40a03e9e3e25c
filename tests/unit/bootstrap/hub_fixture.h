/// \file
/// A hub in this process, and ranks that are threads connected to it by TCP.
#pragma once

#include <memory>
#include <string>

#include "libddp/bootstrap/hub.h"
#include "libddp/bootstrap/hub_client.h"
#include "libddp/bootstrap/tcp_control_plane.h"
#include "libddp/bootstrap/tcp_store.h"

namespace ddp {

inline Identity test_identity(int rank, int world_size) {
  auto identity = Identity::of_process(rank, world_size);
  identity.host = "host" + std::to_string(rank);
  identity.pid = 1000 + rank;
  return identity;
}

struct TestHub {
  explicit TestHub(int size, std::string job = "job",
                   Milliseconds greeting_limit = std::chrono::seconds(5))
      : world_size(size), token(std::move(job)) {
    HubOptions options;
    options.token = token;
    options.identity = test_identity(0, size);
    options.ports = {0};
    options.greeting_limit = greeting_limit;
    hub = std::make_unique<Hub>(options);
  }

  HubAddress address() const {
    return {{"127.0.0.1"}, {hub->port()}, token, "a test"};
  }

  std::shared_ptr<HubClient> connect(
      int rank, int size, Milliseconds limit = std::chrono::seconds(5)) const {
    Greeting greeting;
    greeting.rank = rank;
    greeting.world_size = size;
    greeting.identity = encode(test_identity(rank, size));
    return std::make_shared<HubClient>(address(), greeting,
                                       Deadline::in(limit));
  }
  std::shared_ptr<HubClient> connect(int rank) const {
    return connect(rank, world_size);
  }

  int world_size;
  std::string token;
  std::unique_ptr<Hub> hub;
};

}  // namespace ddp
