#include "libddp/reduce/plan.h"

#include <gmock/gmock.h>

#include <thread>

#include "libddp/bootstrap/world.h"

namespace ddp {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Plan make_plan(std::vector<ParameterSpec> parameters, int world = 2) {
  std::vector<DType> gradients;
  for (const auto& p : parameters)
    gradients.push_back(p.dtype == DType::kFloat64 ? DType::kFloat64
                                                   : DType::kFloat32);
  return Plan(std::move(parameters), gradients, {.world = world});
}

std::string refusal(std::vector<ParameterSpec> parameters) {
  try {
    make_plan(std::move(parameters));
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Plan, GroupsByDtypeAndFreezing) {
  const Plan plan =
      make_plan({{.name = "a", .shape = {7}},
                 {.name = "b", .shape = {13}, .dtype = DType::kBFloat16},
                 {.name = "c", .shape = {1}},
                 {.name = "d", .shape = {3}, .dtype = DType::kFloat64},
                 {.name = "e", .shape = {5}, .requires_grad = false}});
  ASSERT_EQ(plan.arenas().size(), 4u);
  EXPECT_EQ(plan.placement(0).arena, plan.placement(2).arena);
  EXPECT_NE(plan.placement(0).arena, plan.placement(4).arena);
  EXPECT_FALSE(plan.arenas()[plan.placement(4).arena].trainable);
  EXPECT_EQ(plan.arenas()[plan.placement(3).arena].gradient_dtype,
            DType::kFloat64);
  EXPECT_EQ(plan.launch_order().size(), 3u);
}

TEST(Plan, LaunchesBucketsOfLaterParametersFirst) {
  std::vector<ParameterSpec> parameters;
  for (int i = 0; i < 24; ++i)
    parameters.push_back({.name = concat("layer", i), .shape = {100'000}});
  const Plan plan = make_plan(parameters);
  int previous = 24;
  for (const BucketRef ref : plan.launch_order()) {
    const auto& members =
        plan.arenas()[ref.arena].layout.buckets()[ref.bucket].parameters;
    EXPECT_LT(members.front(), previous);
    previous = members.back();
  }
  EXPECT_EQ(previous, 0);
}

TEST(Plan, CountsATiedParameterOnce) {
  const Plan plan =
      make_plan({{.name = "wte", .shape = {7, 4}},
                 {.name = "head", .shape = {7, 4}, .tied_to = "wte"}});
  EXPECT_EQ(plan.owner(1), 0);
  EXPECT_EQ(plan.sharers(0), 2);
  EXPECT_EQ(plan.placement(1).range, plan.placement(0).range);
  EXPECT_EQ(plan.arenas()[0].parameters.size(), 1u);
}

TEST(Plan, NamesWhatIsWrongWithAParameter) {
  EXPECT_THAT(refusal({{.name = "w"}, {.name = "w"}}),
              HasSubstr("parameters 0 and 1 have the same name 'w'"));
  EXPECT_THAT(refusal({{.name = ""}}), HasSubstr("parameter 0 has no name"));
  EXPECT_THAT(refusal({{.name = "i", .shape = {2}, .dtype = DType::kInt64}}),
              HasSubstr("'i' int64[2]"));
  EXPECT_THAT(refusal({{.name = "h", .shape = {2}, .tied_to = "x"}}),
              HasSubstr("tied to 'x', which is not registered"));
  EXPECT_THAT(refusal({{.name = "w", .shape = {2}},
                       {.name = "h", .shape = {3}, .tied_to = "w"}}),
              AllOf(HasSubstr("float32[3]"), HasSubstr("float32[2]")));
  EXPECT_THAT(refusal({{.name = "n", .shape = {2, -1}}}),
              HasSubstr("negative size -1"));
}

TEST(Plan, AppendsAnUnfrozenParameterWhereItsWeightsLie) {
  Plan plan = make_plan({{.name = "a", .shape = {300}},
                         {.name = "f", .shape = {5}, .requires_grad = false}});
  const auto before = plan.hash();
  const int arena = plan.unfreeze(1, DType::kFloat32);
  EXPECT_NE(plan.hash(), before);
  EXPECT_EQ(plan.placement(1).arena, arena);
  EXPECT_EQ(plan.weights_within(arena), (std::pair<int, std::int64_t>{1, 0}));
  EXPECT_EQ(plan.arenas()[arena].layout.size(), 256);
  EXPECT_EQ(plan.launch_order().back(), (BucketRef{arena, 0}));
  EXPECT_THROW(plan.unfreeze(0, DType::kFloat32), InvalidArgument);
}

/// What each of two ranks throws when it compares its plan.
std::vector<std::string> compare(const std::vector<ParameterSpec>& a,
                                 const std::vector<ParameterSpec>& b) {
  const auto worlds = make_thread_worlds(2);
  std::vector<std::string> errors(2, "equal");
  const auto run = [&](int rank) {
    try {
      expect_equal_plans(make_plan(rank == 0 ? a : b), worlds[rank].control(),
                         rank, Deadline::in(std::chrono::seconds(5)));
    } catch (const InvalidArgument& error) {
      errors[rank] = error.what();
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  return errors;
}

struct Difference {
  ParameterSpec theirs;
  std::string shows;
};

TEST(ExpectEqualPlans, NamesTheFirstDifferenceOnEveryRank) {
  const ParameterSpec first{.name = "first", .shape = {1}};
  const ParameterSpec ours{.name = "emb", .shape = {100, 500}};
  ParameterSpec half = ours, frozen = ours;
  half.dtype = DType::kBFloat16;
  frozen.requires_grad = false;
  for (const Difference& difference :
       {Difference{{.name = "emb", .shape = {10000, 500}},
                   "'emb' float32[10000, 500]"},
        Difference{half, "'emb' bfloat16[100, 500]"},
        Difference{frozen, "'emb' float32[100, 500] frozen"},
        Difference{{.name = "other", .shape = {100, 500}}, "'other'"}}) {
    for (const std::string& error :
         compare({first, ours}, {first, difference.theirs}))
      EXPECT_THAT(error, AllOf(HasSubstr("differ at parameter 1"),
                               HasSubstr("'emb' float32[100, 500]"),
                               HasSubstr(difference.shows)));
  }
  for (const std::string& error : compare({first, ours}, {first}))
    EXPECT_THAT(error, AllOf(HasSubstr("differ at parameter 1"),
                             HasSubstr("nothing (it has 1 parameters)")));
  EXPECT_EQ(compare({first}, {first}),
            (std::vector<std::string>{"equal", "equal"}));
}

}  // namespace
}  // namespace ddp
