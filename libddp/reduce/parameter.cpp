#include "libddp/reduce/parameter.h"

#include "kernels/core/error.h"

namespace ddp {

std::int64_t numel(const ParameterSpec& parameter) {
  std::int64_t product = 1;
  for (const std::int64_t size : parameter.shape) {
    DDP_EXPECT(size >= 0, InvalidArgument, "parameter '", parameter.name,
               "' has a negative size ", size, " in its shape");
    product *= size;
  }
  return product;
}

std::string to_text(const ParameterSpec& parameter) {
  std::string shape;
  for (const std::int64_t size : parameter.shape)
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return concat("'", parameter.name, "' ", name(parameter.dtype), "[", shape,
                "]", parameter.requires_grad ? "" : " frozen",
                parameter.tied_to.empty() ? "" : " tied to ",
                parameter.tied_to);
}

}  // namespace ddp
