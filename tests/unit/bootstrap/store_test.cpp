#include <fcntl.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "kernels/core/error.h"
#include "libddp/bootstrap/file_store.h"
#include "libddp/bootstrap/memory_store.h"
#include "tests/unit/bootstrap/hub_fixture.h"

namespace ddp {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A folder that is gone after the test.
struct TemporaryFolder {
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "ddp-store-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

/// Handles of several ranks to one store of each kind.
struct Stores {
  std::vector<std::shared_ptr<Store>> ranks;
  std::shared_ptr<void> keep_alive;
};

Stores memory_stores(int count) {
  const auto store = std::make_shared<MemoryStore>();
  return {
      std::vector<std::shared_ptr<Store>>(static_cast<size_t>(count), store),
      nullptr};
}

Stores file_stores(int count) {
  Stores stores;
  const auto folder = std::make_shared<TemporaryFolder>();
  stores.keep_alive = folder;
  for (int i = 0; i < count; ++i)
    stores.ranks.push_back(std::make_shared<FileStore>(
        folder->path + "/store", "job",
        i == 0 ? FileStore::Role::kFounder : FileStore::Role::kMember));
  return stores;
}

Stores tcp_stores(int count) {
  Stores stores;
  const auto hub = std::make_shared<TestHub>(count);
  stores.keep_alive = hub;
  for (int i = 0; i < count; ++i)
    stores.ranks.push_back(std::make_shared<TcpStore>(hub->connect(i)));
  return stores;
}

struct Kind {
  const char* name;
  std::function<Stores(int)> make;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class StoreTest : public ::testing::TestWithParam<Kind> {};

TEST_P(StoreTest, GivesEveryRankWhatOneHasSet) {
  const auto stores = GetParam().make(3);
  const std::string bytes("\0a\n\xff", 4);
  stores.ranks[1]->set("key", bytes);
  for (const auto& store : stores.ranks) {
    EXPECT_EQ(store->get("key", Deadline::in(1s)), bytes);
    EXPECT_EQ(store->find("key"), bytes);
    EXPECT_EQ(store->find("other"), std::nullopt);
  }
  stores.ranks[2]->set("key", "");
  EXPECT_EQ(stores.ranks[0]->get("key", Deadline::in(1s)), "");
}

TEST_P(StoreTest, WaitsForAKeyThatComesLater) {
  const auto stores = GetParam().make(2);
  std::thread late([&] {
    std::this_thread::sleep_for(50ms);
    stores.ranks[0]->set("late", "here");
  });
  EXPECT_EQ(stores.ranks[1]->get("late", Deadline::in(5s)), "here");
  late.join();
}

TEST_P(StoreTest, NamesTheKeyThatDoesNotComeInTime) {
  const auto stores = GetParam().make(2);
  try {
    stores.ranks[1]->get("absent", Deadline::in(100ms));
    ADD_FAILURE() << "no timeout";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"absent\""));
    EXPECT_THAT(error.what(), HasSubstr("0.1 s"));
  }
}

TEST_P(StoreTest, CountsEveryAdditionOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kAdditions = 25;
  const auto stores = GetParam().make(kThreads);
  std::vector<std::thread> threads;
  for (const auto& store : stores.ranks)
    threads.emplace_back([&store] {
      for (int i = 0; i < kAdditions; ++i) store->add("count", 3);
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(stores.ranks[0]->add("count", 0), 3 * kThreads * kAdditions);
  EXPECT_EQ(stores.ranks[1]->add("count", -300), 0);
}

TEST_P(StoreTest, RefusesToCountWithAText) {
  const auto stores = GetParam().make(1);
  stores.ranks[0]->set("text", "one");
  EXPECT_THROW(stores.ranks[0]->add("text", 1), InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(AllStores, StoreTest,
                         ::testing::Values(Kind{"Memory", memory_stores},
                                           Kind{"File", file_stores},
                                           Kind{"Tcp", tcp_stores}),
                         [](const auto& param) { return param.param.name; });

TEST(FileStore, CutsOffTheEntryOfAWriterThatDied) {
  const TemporaryFolder folder;
  const auto path = folder.path + "/store";
  FileStore first(path, "job", FileStore::Role::kFounder);
  first.set("a", "1");
  // Half an entry: the length of a key that never came.
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND);
  ASSERT_EQ(::write(file, "\7\0\0\0\0\0\0\0ab", 10), 10);
  ::close(file);
  FileStore second(path, "job", FileStore::Role::kMember);
  EXPECT_EQ(second.find("a"), "1");
  second.set("b", "2");
  EXPECT_EQ(first.find("b"), "2");
  EXPECT_EQ(first.find("a"), "1");
}

TEST(FileStore, DoesNotReadTheFileOfAnotherJob) {
  const TemporaryFolder folder;
  const auto path = folder.path + "/store";
  FileStore(path, "yesterday", FileStore::Role::kFounder).set("a", "old");
  FileStore member(path, "today", FileStore::Role::kMember);
  try {
    member.get("a", Deadline::in(50ms));
    ADD_FAILURE() << "read a stale file";
  } catch (const Timeout& error) {
    EXPECT_THAT(error.what(), HasSubstr("left over from another job"));
  }
  FileStore founder(path, "today", FileStore::Role::kFounder);
  founder.set("a", "new");
  EXPECT_EQ(member.get("a", Deadline::in(1s)), "new");
}

TEST(FileStore, FollowsARestartedFounder) {
  const TemporaryFolder folder;
  const auto path = folder.path + "/store";
  FileStore(path, "job", FileStore::Role::kFounder).set("a", "old");
  FileStore member(path, "job", FileStore::Role::kMember);
  EXPECT_EQ(member.find("a"), "old");
  FileStore founder(path, "job", FileStore::Role::kFounder);
  EXPECT_EQ(member.find("a"), std::nullopt);
  founder.set("a", "new");
  EXPECT_EQ(member.find("a"), "new");
}

TEST(FileStore, NamesAFolderItCannotWriteTo) {
  try {
    FileStore("/nonexistent/store", "job", FileStore::Role::kFounder);
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nonexistent/store"));
    EXPECT_THAT(error.what(), HasSubstr("errno 2"));
  }
}

TEST(TcpStore, RefusesAValueThatIsTooLarge) {
  const TestHub hub(1);
  TcpStore store(hub.connect(0));
  EXPECT_THROW(store.set("k", std::string(kMaxMessageBytes, 'x')),
               InvalidArgument);
  store.set("k", std::string(kMaxMessageBytes - 1, 'x'));
  EXPECT_EQ(store.get("k", Deadline::in(5s)).size(), kMaxMessageBytes - 1);
}

}  // namespace
}  // namespace ddp
