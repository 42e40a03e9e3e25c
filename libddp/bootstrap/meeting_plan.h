/// \file
/// Where and how the ranks meet: decided from launcher and environment alone.
#pragma once

#include <cstdint>
#include <string>

#include "libddp/bootstrap/hub_address.h"
#include "libddp/bootstrap/launcher.h"

namespace ddp {

enum class MeetingMethod { kNone, kMpi, kTcp, kFile };

/// "mpi", "tcp", ...
std::string_view name(MeetingMethod method) noexcept;

/// What this process can do and has been told, apart from its environment.
struct MeetingFacts {
  std::string init_method;
  bool has_mpi = false;
  bool mpi_speaks_pmi = false;
  bool is_mpi_running = false;
  bool has_mpi_communicator = false;
  std::int64_t parent_pid = 0;
};

struct MeetingPlan {
  MeetingMethod method = MeetingMethod::kNone;
  /// Where rank 0 listens (kTcp), or which ports it may take (kMpi, kFile).
  HubAddress hub;
  std::string path;  ///< of the file store (kFile)
};

/// Throws InvalidArgument when there is no way for the ranks to meet, or an
/// address cannot be read; the text names what to set.
MeetingPlan plan_meeting(const LaunchInfo& launch,
                         const Environment& environment,
                         const MeetingFacts& facts);

/// What tells this job from others on the same port: LIBDDP_JOB_TOKEN, or
/// what the launcher numbers its jobs by.
std::string job_token(const LaunchInfo& launch, const Environment& environment,
                      std::int64_t parent_pid);

}  // namespace ddp
