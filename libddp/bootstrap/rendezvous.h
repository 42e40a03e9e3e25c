/// \file
/// The meeting itself: a hub on rank 0, and every rank connected to it.
#pragma once

#include <memory>
#include <optional>

#include "libddp/bootstrap/control_plane.h"
#include "libddp/bootstrap/hub.h"
#include "libddp/bootstrap/hub_client.h"
#include "libddp/bootstrap/identity.h"
#include "libddp/bootstrap/meeting_plan.h"
#include "libddp/bootstrap/store.h"

namespace ddp {

/// What connects this rank to the others. Members end in reverse order: the
/// hub last.
struct Rendezvous {
  MeetingMethod method = MeetingMethod::kNone;
  Identity identity;
  std::optional<int> mpi_communicator;
  std::unique_ptr<Hub> hub;           ///< on rank 0 alone
  std::shared_ptr<HubClient> client;  ///< of store and control, if by TCP
  std::shared_ptr<Store> store;
  std::shared_ptr<ControlPlane> control;
};

/// Connects this rank; returns when it is connected, which need not mean that
/// the others are. Rank and size of `launch` are replaced by MPI's where that
/// decides. Throws what init() is said to throw.
/// What was opened before an error is in `rendezvous`.
void meet(Rendezvous& rendezvous, LaunchInfo& launch,
          const Environment& environment, const InitOptions& options,
          Deadline deadline);

}  // namespace ddp
