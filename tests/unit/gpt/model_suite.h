/// \file
/// ModelTest: the whole model against a PyTorch reference, for both twins.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "examples/gpt/model/model.h"
#include "libddp/checkpoint/safetensors.h"
#include "libddp/device/stream.h"
#include "tests/unit/gpt/parameter_store.h"

namespace gpt {

struct ModelCase {
  std::string name;
  ddp::Device device;
  ddp::DType dtype = ddp::DType::kFloat32;
};

/// A model with the weights, tokens and targets of model.safetensors, which
/// torch_reference.py wrote.
class ModelTest : public ::testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override;
  std::vector<float> read(const std::string& name) const;
  void upload_tokens();
  double loss() const;
  /// Targets that count.
  double count() const;

  GptConfig config_;
  std::unique_ptr<ddp::SafetensorsFile> file_;
  std::unique_ptr<ddp::Stream> stream_;
  std::unique_ptr<Gpt> model_;
  std::unique_ptr<ParameterStore> store_;
};

std::string model_case_name(const ::testing::TestParamInfo<ModelCase>& info);

}  // namespace gpt
