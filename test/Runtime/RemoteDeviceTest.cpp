// Programs and states on a device that moves memory, records and runs out of memory: what GPUs do,
// under the sanitizers.
#include "test/Runtime/RemoteDevice.h"
#include "runtime/session/StateStore.h"
#include "runtime/session/Variant.h"
#include "test/Runtime/TestBundle.h"

using namespace moert;
using namespace moert::test;

TEST(RemoteDevice, ProgramsSurviveMovingMemoryAndFailures) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  auto device = std::make_shared<RemoteDevice>();
  auto variant = LoadedVariant::load(**bundle, (*bundle)->manifest().variants(1), device, true, {});
  ASSERT_TRUE(isOk(variant));
  ProgramRunner runner = (*variant)->runner(*(*variant)->entry("plain"));
  std::mt19937 random(3);
  unsigned failed = 0;
  for (int round = 0; round < 3000; ++round) {
    device->failures = round < 1000 ? 5 : 0;
    // Few shapes come often; now and then a larger one moves everything.
    auto n = static_cast<std::int64_t>(1 + random() % 4);
    if (random() % 50 == 0)
      n = static_cast<std::int64_t>(random() % 6000);
    const ProgramRunner::Shape shapes[] = {{n, 3}, {2 * n}};
    Status status = runner.prepare(shapes, {});
    if (!status.isOk()) {
      ASSERT_TRUE(fails(status, ErrorCode::OutOfMemory, "no memory for"));
      ++failed;
      continue;
    }
    auto *x = reinterpret_cast<float *>(runner.input(0).data());
    for (std::int64_t i = 0; i < 3 * n; ++i)
      x[i] = static_cast<float>(round + i);
    std::memset(runner.input(1).data(), round & 0xff, runner.input(1).size());
    ASSERT_TRUE(isOk(runner.run()));
    ASSERT_EQ(runner.output(0).size(), static_cast<std::size_t>(12 * n));
    auto *z = reinterpret_cast<const float *>(runner.output(0).data());
    for (std::int64_t i = 0; i < 3 * n; ++i)
      ASSERT_EQ(z[i], static_cast<float>(round + i + 1)) << "round " << round;
    for (std::byte pair : runner.output(2))
      ASSERT_EQ(pair, std::byte(round & 0xff));
  }
  EXPECT_GT(failed, 10u);
  EXPECT_GT(device->recorded, 4u);
  EXPECT_GT(device->replayed, 1000u);
}

// What a sampler does with a step's logits: the second program reads where the first one wrote,
// also after that has moved, and the first one's outputs come to the host only when asked for.
TEST(RemoteDevice, ProgramsReadEachOthersOutputs) {
  TemporaryFolder folder;
  writeTestBundle(folder / "b");
  auto bundle = Bundle::open(folder / "b");
  ASSERT_TRUE(isOk(bundle));
  auto device = std::make_shared<RemoteDevice>();
  auto variant = LoadedVariant::load(**bundle, (*bundle)->manifest().variants(1), device, true, {});
  ASSERT_TRUE(isOk(variant));
  const CompiledProgram &plain = *(*variant)->entry("plain");
  ProgramRunner sources[] = {(*variant)->runner(plain), (*variant)->runner(plain)};
  ProgramRunner second = (*variant)->runner(plain);
  std::mt19937 random(3);
  unsigned failed = 0;
  for (int round = 0; round < 2000; ++round) {
    device->failures = round < 600 ? 5 : 0;
    auto n = static_cast<std::int64_t>(1 + random() % 4);
    if (random() % 50 == 0)
      n = static_cast<std::int64_t>(1 + random() % 6000);
    const ProgramRunner::Shape shapes[] = {{n, 3}, {2 * n}};
    ProgramRunner &first = sources[random() % 2];
    Status status = first.prepare(shapes, {});
    if (status.isOk()) {
      auto *x = reinterpret_cast<float *>(first.input(0).data());
      for (std::int64_t i = 0; i < 3 * n; ++i)
        x[i] = static_cast<float>(round + i);
      ASSERT_TRUE(isOk(first.start()));
      second.borrowInput(0, first.outputOnDevice(0));
      status = second.prepare(shapes, {});
    }
    if (!status.isOk()) {
      ASSERT_TRUE(fails(status, ErrorCode::OutOfMemory, "no memory for"));
      ++failed;
      continue;
    }
    auto expect = [&](ProgramRunner &runner, int more) {
      auto *z = reinterpret_cast<const float *>(runner.output(0).data());
      for (std::int64_t i = 0; i < 3 * n; ++i)
        ASSERT_EQ(z[i], static_cast<float>(round + i + more)) << "round " << round;
    };
    ASSERT_TRUE(isOk(second.run()));
    expect(second, 2);
    if (round % 3 == 0) {
      ASSERT_TRUE(isOk(first.fetch()));
      expect(first, 1);
    }
  }
  EXPECT_GT(failed, 10u);
  EXPECT_GT(device->replayed, 1000u);
  // A borrowed input that is too short is refused.
  const ProgramRunner::Shape shapes[] = {{100, 3}, {200}};
  second.borrowInput(0, {sources[0].outputOnDevice(0).data, 1199});
  EXPECT_TRUE(fails(second.prepare(shapes, {}), ErrorCode::Internal, "needs 1200 bytes"));
}

TEST(RemoteDevice, StatesSurviveMovingMemoryAndFailures) {
  moec::bundle::Program program;
  for (std::uint64_t bytes : {48, 100}) {
    moec::bundle::State *state = program.add_states();
    state->set_kind(moec::bundle::State::PAGED);
    state->set_bytes(bytes);
  }
  auto device = std::make_shared<RemoteDevice>();
  device->failures = 4;
  StateStore store(program, 0, device);
  std::vector<std::uint32_t> taken;
  auto place = [&](std::size_t state, std::uint32_t block) {
    std::uint64_t bytes = program.states(static_cast<int>(state)).bytes();
    return std::span(store.spans()[state].data + block * bytes, bytes);
  };
  unsigned failed = 0;
  for (int round = 0; round < 400; ++round) {
    Status status = store.reserve(StateStore::Blocks, 7);
    failed += !status.isOk();
    for (int i = 0; status.isOk() && i < 7; ++i) {
      auto block = store.allocate(StateStore::Blocks);
      ASSERT_TRUE(isOk(block));
      for (std::size_t state : {0, 1})
        for (std::byte &byte : place(state, *block)) {
          ASSERT_EQ(byte, std::byte(0));
          byte = std::byte(*block);
        }
      taken.push_back(*block);
    }
    // Also after a failure every block is where the spans say.
    for (std::uint32_t block : taken)
      for (std::size_t state : {0, 1})
        for (std::byte byte : place(state, block))
          ASSERT_EQ(byte, std::byte(block)) << "round " << round;
    if (round % 5 == 4)
      for (int i = 0; i < 9 && !taken.empty(); ++i) {
        store.release(StateStore::Blocks, taken.back());
        taken.pop_back();
      }
  }
  EXPECT_GT(failed, 3u);
}
