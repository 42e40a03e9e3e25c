#include "libddp/backends/nccl/settings.h"

#include "libddp/backends/nccl/nccl_call.h"

namespace ddp::nccl {
namespace {

Registration parse_registration(const std::string& text) {
  if (text == "none") return Registration::kNone;
  if (text == "buffer") return Registration::kBuffer;
  if (text == "window") return Registration::kWindow;
  throw InvalidArgument(concat("LIBDDP_NCCL_REGISTRATION is \"", text,
                               "\"; it may be none, buffer or window"));
}

void ask_for_copy_engines([[maybe_unused]] ncclConfig_t& config) {
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
  if (loaded_version() >= NCCL_VERSION(2, 28, 0))
    config.CTAPolicy = NCCL_CTA_POLICY_ZERO;
#endif
}

}  // namespace

Settings settings_for(Traffic traffic, const Environment& environment) {
  Settings settings;
  settings.config.blocking = 1;
  settings.on_callers_stream = traffic == Traffic::kTail;
  if (traffic == Traffic::kGather) {
    settings.registration = Registration::kWindow;
    ask_for_copy_engines(settings.config);
  }
  if (traffic == Traffic::kHidden) {
    if (const auto most = environment.get_int("LIBDDP_NCCL_HIDDEN_CTAS")) {
      DDP_EXPECT(*most > 0 && *most <= 64, InvalidArgument,
                 "LIBDDP_NCCL_HIDDEN_CTAS is ", *most, "; it may be 1 to 64");
      settings.config.maxCTAs = static_cast<int>(*most);
    }
  }
  if (const auto text = environment.get("LIBDDP_NCCL_REGISTRATION"))
    settings.registration = parse_registration(*text);
  return settings;
}

}  // namespace ddp::nccl
