/// \file
/// Weights as safetensors files with the names of the Hugging Face checkpoints.
#pragma once

#include <span>
#include <string>

#include "libddp/checkpoint/safetensors.h"
#include "libddp/engine/data_parallel.h"

namespace gpt {

/// Copies one parameter from an open file (float32, bfloat16 or float16; its
/// name may begin with "transformer."). Throws InvalidArgument naming the
/// file's and the model's shape where they differ.
void read_weight(const ddp::SafetensorsFile& file, const std::string& path,
                 const ddp::ParameterSpec& parameter, std::span<float> values);

/// Writes all weights as float32. Collective; rank 0 writes. Waits for the
/// device.
void write_weights(const std::string& path, ddp::DataParallel& engine,
                   bool is_writer);

}  // namespace gpt
