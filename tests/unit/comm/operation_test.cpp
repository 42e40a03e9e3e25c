#include "libddp/comm/operation.h"

#include <gtest/gtest.h>

namespace ddp {
namespace {

Operation all_reduce_of(std::int64_t numel, DType dtype = DType::kFloat32,
                        ReduceOp op = ReduceOp::kSum) {
  Operation operation;
  operation.kind = OperationKind::kAllReduce;
  operation.dtype = dtype;
  operation.reduce_op = op;
  operation.numel = numel;
  return operation;
}

std::uint64_t hash_of(std::initializer_list<Operation> operations) {
  OperationHash hash;
  for (const Operation& operation : operations) hash.add(operation);
  return hash.value();
}

TEST(Operation, TextGivesBytesInTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(describe(all_reduce_of(6'553'600)), "all_reduce of 25 MiB float32");
  EXPECT_EQ(describe(Operation{}), "barrier");
}

TEST(Operation, FingerprintShowsAllThatMustAgree) {
  Operation operation =
      all_reduce_of(409'600, DType::kBFloat16, ReduceOp::kMax);
  operation.sequence = 17;
  EXPECT_EQ(fingerprint(operation), "#17 all_reduce(max) of 409600 bfloat16");
  operation.kind = OperationKind::kBroadcast;
  operation.peer = 3;
  EXPECT_EQ(fingerprint(operation), "#17 broadcast of 409600 bfloat16 from 3");
}

TEST(OperationHash, IsEqualForEqualHistories) {
  EXPECT_EQ(hash_of({all_reduce_of(7), Operation{}}),
            hash_of({all_reduce_of(7), Operation{}}));
}

TEST(OperationHash, DiffersWhereAnythingDiffers) {
  const std::uint64_t base = hash_of({all_reduce_of(409'600)});
  EXPECT_NE(base, hash_of({}));
  EXPECT_NE(base, hash_of({all_reduce_of(409'598)}));
  EXPECT_NE(base, hash_of({all_reduce_of(409'600, DType::kBFloat16)}));
  EXPECT_NE(base,
            hash_of({all_reduce_of(409'600, DType::kFloat32, ReduceOp::kMax)}));
  EXPECT_NE(base, hash_of({all_reduce_of(409'600), Operation{}}));
}

TEST(OperationHash, DiffersWhereTwoOperationsAreSwapped) {
  EXPECT_NE(hash_of({all_reduce_of(7), Operation{}}),
            hash_of({Operation{}, all_reduce_of(7)}));
}

TEST(OperationHash, IgnoresSendAndRecvWhichDifferByRank) {
  Operation send = all_reduce_of(7);
  send.kind = OperationKind::kSend;
  send.peer = 1;
  EXPECT_EQ(hash_of({send, Operation{}}), hash_of({Operation{}}));
}

}  // namespace
}  // namespace ddp
