// What every device does alike.
#include "test/Runtime/DeviceFixture.h"

#include <algorithm>
#include <cstring>
#include <numeric>

using namespace moert;
using namespace moert::test;

namespace {

using Values = std::vector<std::int32_t>;

class DeviceConformance : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance, testing::Values("cpu", "cuda"),
                         [](const auto &info) { return info.param; });

// What the kernel "add" takes.
constexpr KernelParameters sum = {3, 1, 0, false};

std::vector<std::byte> pattern(std::size_t count, unsigned seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::byte>((i * 131 + seed) >> (i % 3));
  return bytes;
}

Values counting(std::size_t count, std::int32_t from = 0) {
  Values values(count);
  std::iota(values.begin(), values.end(), from);
  return values;
}

} // namespace

TEST_P(DeviceConformance, TellsWhatItIs) {
  EXPECT_EQ(device->isHostAccessible(), !isCuda());
  EXPECT_EQ(device->name(), isCuda() ? "cuda:" + std::to_string(cudaIndex) : "cpu");
  EXPECT_EQ(device->threads(), 2u);
  MemoryInfo memory = device->memoryInfo();
  EXPECT_GT(memory.total, std::uint64_t(1) << 20);
  EXPECT_LE(memory.free, memory.total);
}

TEST_P(DeviceConformance, UploadsDownloadsCopiesAndSetsAnyBytes) {
  for (std::size_t size : {0, 1, 3, 255, 4097, (1 << 20) + 1}) {
    auto memory = device->allocate(size + 100, "a test"), other = device->allocate(size, "a test");
    ASSERT_TRUE(isOk(memory));
    ASSERT_TRUE(isOk(other));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0u);
    EXPECT_EQ(memory->size(), size + 100);
    ASSERT_TRUE(isOk(device->set(memory->span(), std::byte(0xa5))));
    for (std::size_t offset : {0, 1, 7, 64}) {
      MemorySpan part{memory->data() + offset, size};
      std::vector<std::byte> sent = pattern(size, static_cast<unsigned>(offset)), got(size);
      ASSERT_TRUE(isOk(device->upload(part, sent)));
      ASSERT_TRUE(isOk(device->copy(other->span(), part)));
      ASSERT_TRUE(isOk(device->set(part, std::byte(offset))));
      ASSERT_TRUE(isOk(device->download(got, other->span())));
      EXPECT_EQ(got, sent);
      ASSERT_TRUE(isOk(device->download(got, part)));
      EXPECT_EQ(got, std::vector<std::byte>(size, std::byte(offset)));
    }
    std::vector<std::byte> rest(36);
    ASSERT_TRUE(isOk(device->download(rest, {memory->data() + size + 64, 36})));
    EXPECT_EQ(rest, std::vector<std::byte>(36, std::byte(0xa5)));
  }
}

TEST_P(DeviceConformance, MemoryGrowsKeepingContentAndZeroes) {
  DeviceMemory memory;
  std::vector<std::byte> expected;
  for (std::size_t size : {0, 100, 1000, 1000, 900000, 3 << 20}) {
    ASSERT_TRUE(isOk(device->grow(memory, size, "a test")));
    EXPECT_EQ(memory.size(), size);
    std::size_t before = expected.size();
    expected.resize(size);
    std::vector<std::byte> got(size);
    ASSERT_TRUE(isOk(device->download(got, memory.span())));
    ASSERT_EQ(got, expected);
    std::vector<std::byte> fresh = pattern(size - before, 1);
    std::copy(fresh.begin(), fresh.end(), expected.begin() + static_cast<std::ptrdiff_t>(before));
    ASSERT_TRUE(isOk(device->upload({memory.data() + before, fresh.size()}, fresh)));
  }
}

TEST_P(DeviceConformance, FillsLargeMemoryFromPieces) {
  const std::vector<std::byte> content = pattern((70 << 20) + 3, 5);
  auto filler = device->makeFiller();
  ASSERT_TRUE(isOk(filler));
  auto read = [&](std::uint64_t offset, std::span<std::byte> bytes) -> Status {
    std::memcpy(bytes.data(), content.data() + offset, bytes.size());
    return {};
  };
  for (std::size_t size : {std::size_t(0), std::size_t(5), content.size()}) {
    auto memory = device->allocate(size, "a test");
    ASSERT_TRUE(isOk(memory));
    ASSERT_TRUE(isOk((*filler)->fill(memory->span(), read)));
    std::vector<std::byte> got(size);
    ASSERT_TRUE(isOk(device->download(got, memory->span())));
    EXPECT_TRUE(std::equal(got.begin(), got.end(), content.begin())) << size;
  }
  auto memory = device->allocate(content.size(), "a test");
  ASSERT_TRUE(isOk(memory));
  auto broken = [&](std::uint64_t offset, std::span<std::byte> bytes) -> Status {
    if (offset + bytes.size() == content.size())
      return {ErrorCode::InputOutput, "the file ends here"};
    return read(offset, bytes);
  };
  EXPECT_TRUE(fails((*filler)->fill(memory->span(), broken), ErrorCode::InputOutput, "ends here"));
  EXPECT_TRUE(isOk((*filler)->fill(memory->span(), read)));
  EXPECT_TRUE(isOk(device->synchronise()));
}

TEST_P(DeviceConformance, LaunchesWithBindingsAndDimensions) {
  for (std::size_t n : {1, 255, 256, 257, 100003}) {
    Integers x(*device, counting(n)), y(*device, counting(n, 1000)), z(*device, n);
    Commands commands(*kernels);
    commands.launch("add", static_cast<std::uint32_t>((n + 255) / 256),
                    {x.span(), y.span(), z.span()}, {static_cast<std::int64_t>(n)});
    ASSERT_TRUE(isOk(device->run(commands.list())));
    Values got = z.read();
    for (std::size_t i = 0; i < n; ++i)
      ASSERT_EQ(got[i], static_cast<std::int32_t>(1000 + 2 * i)) << i;
  }
}

TEST_P(DeviceConformance, LaunchesHaveScratchSpace) {
  Integers x(*device, counting(200, 1)), z(*device, 200);
  for (std::uint64_t scratch : {800, 5000000, 900}) {
    Commands commands(*kernels);
    commands.launch("reverse", 1, {x.span(), z.span()}, {200}, scratch);
    ASSERT_TRUE(isOk(device->run(commands.list())));
    Values got = z.read();
    for (std::int32_t i = 0; i < 200; ++i)
      ASSERT_EQ(got[static_cast<std::size_t>(i)], 2 * (200 - i));
  }
}

TEST_P(DeviceConformance, ManyLaunchesRunInOrder) {
  constexpr std::size_t n = 777;
  Integers y(*device, counting(n)), z(*device, n);
  Commands commands(*kernels);
  for (int i = 0; i < 500; ++i) {
    commands.launch("advance", 4, {y.span()}, {n});
    if (i == 249)
      commands.copy(y.span(), z.span());
  }
  ASSERT_TRUE(isOk(device->run(commands.list())));
  ASSERT_TRUE(isOk(device->synchronise()));
  Values last = y.read(), middle = z.read();
  for (std::size_t i = 0; i < n; ++i) {
    auto value = static_cast<std::uint32_t>(i);
    for (int k = 0; k < 250; ++k)
      value = 3 * value + 1;
    ASSERT_EQ(middle[i], static_cast<std::int32_t>(value));
    for (int k = 0; k < 250; ++k)
      value = 3 * value + 1;
    ASSERT_EQ(last[i], static_cast<std::int32_t>(value));
  }
}

TEST_P(DeviceConformance, LargeGridsAndEmptyLists) {
  constexpr std::uint32_t workgroups = 300001;
  Integers z(*device, workgroups);
  Commands commands(*kernels);
  ASSERT_TRUE(isOk(device->run(commands.list())));
  commands.launch("number", workgroups, {z.span()}, {-5, 3}, 0, {.threads = 32});
  ASSERT_TRUE(isOk(device->run(commands.list())));
  Values got = z.read();
  for (std::uint32_t w = 0; w < workgroups; ++w)
    ASSERT_EQ(got[w], static_cast<std::int32_t>(3 * w) - 5);
}

TEST_P(DeviceConformance, RefusesUnknownKernelsAndBrokenCode) {
  EXPECT_TRUE(fails(kernels->find("absent", {.threads = 1}, {}), ErrorCode::InvalidData,
                    "the code has no kernel 'absent'"));
  EXPECT_TRUE(fails(device->load({"this is no code", "broken.code"}).status(),
                    ErrorCode::InvalidData, "broken.code: error: the code cannot be loaded"));
  EXPECT_TRUE(isOk(kernels->find("add", {.threads = 1}, sum)));
  if (!isCuda()) // there parameters lie in arrays, and there are no cubins
    return;
  EXPECT_TRUE(fails(device->load({cudaTestKernels, "k.ptx", "a text", "k.cubin"}).status(),
                    ErrorCode::InvalidData, "k.cubin: error: the code cannot be loaded: it is no"));
  for (KernelParameters wrong : {KernelParameters{2, 1, 0, false}, KernelParameters{3, 1, 0, true},
                                 KernelParameters{3, 0, 1, false}})
    EXPECT_TRUE(fails(kernels->find("add", {.threads = 1}, wrong), ErrorCode::InvalidData,
                      "kernel 'add' has 4 parameters; the launch gives "));
}

TEST_P(DeviceConformance, SaysWhenMemoryIsShort) {
  DeviceMemory memory;
  ASSERT_TRUE(isOk(device->grow(memory, 100, "a test")));
  constexpr std::uint64_t tooMuch = std::uint64_t(1) << 48;
  EXPECT_TRUE(fails(device->allocate(tooMuch, "a huge test"), ErrorCode::OutOfMemory,
                    "cannot get 281474976710656 bytes of memory for a huge test"));
  EXPECT_TRUE(fails(device->grow(memory, tooMuch, "a huge test"), ErrorCode::OutOfMemory, ""));
  EXPECT_EQ(memory.size(), 100u);
  Integers x(*device, counting(200, 1)), z(*device, 200);
  Commands commands(*kernels);
  commands.launch("reverse", 1, {x.span(), z.span()}, {200}, tooMuch);
  EXPECT_TRUE(
      fails(device->run(commands.list()), ErrorCode::OutOfMemory, "the scratch space of a kernel"));
  Commands modest(*kernels);
  modest.launch("reverse", 1, {x.span(), z.span()}, {200}, 800);
  ASSERT_TRUE(isOk(device->run(modest.list())));
  EXPECT_EQ(z.read()[0], 400);
}

TEST_P(DeviceConformance, TwoDevicesWorkAtOnce) {
  std::shared_ptr<Device> second;
  std::unique_ptr<KernelSet> secondKernels;
  open(second, true);
  ASSERT_TRUE(second);
  loadKernels(*second, secondKernels);
  Integers a(*device, counting(1000)), b(*second, counting(1000));
  Commands onFirst(*kernels), onSecond(*secondKernels);
  onFirst.launch("advance", 4, {a.span()}, {1000});
  onSecond.launch("advance", 4, {b.span()}, {1000});
  onSecond.launch("advance", 4, {b.span()}, {1000});
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(isOk(device->run(onFirst.list())));
    ASSERT_TRUE(isOk(second->run(onSecond.list())));
  }
  Values first = a.read(), other = b.read();
  std::uint32_t value = 7;
  for (int i = 0; i < 20; ++i)
    value = 3 * value + 1;
  EXPECT_EQ(first[7], static_cast<std::int32_t>(value));
  for (int i = 0; i < 20; ++i)
    value = 3 * value + 1;
  EXPECT_EQ(other[7], static_cast<std::int32_t>(value));
}

TEST_P(DeviceConformance, RecordingsDoWhatTheirListsDo) {
  constexpr std::size_t n = 300;
  auto host = device->allocateHost(4 * n, "a test"), result = device->allocateHost(4 * n, "a test");
  ASSERT_TRUE(isOk(host));
  ASSERT_TRUE(isOk(result));
  Integers x(*device, counting(n)), z(*device, n);
  Commands commands(*kernels);
  if (!device->isHostAccessible()) {
    commands.upload = {host->data(), x.span().data, 4 * n};
    commands.download = {result->data(), z.span().data, 4 * n};
  }
  commands.launch("advance", 2, {x.span()}, {n});
  commands.copy(x.span(), z.span());
  commands.launch("reverse", 1, {x.span(), z.span()}, {200}, 800);
  auto recording = device->record(commands.list());
  ASSERT_TRUE(isOk(recording));
  if (device->isHostAccessible()) {
    EXPECT_EQ(*recording, nullptr); // running the list is the fastest way
    return;
  }
  ASSERT_NE(*recording, nullptr);
  auto fill = [&](std::int32_t from) {
    Values values = counting(n, from);
    std::memcpy(host->data(), values.data(), 4 * n);
  };
  auto output = [&] {
    Values values(n);
    std::memcpy(values.data(), result->data(), 4 * n);
    return values;
  };
  for (std::int32_t round = 0; round < 5; ++round) {
    fill(round);
    auto holds = device->replay(**recording);
    ASSERT_TRUE(isOk(holds));
    ASSERT_TRUE(*holds);
    ASSERT_TRUE(isOk(device->synchronise()));
    Values replayed = output();
    std::memset(result->data(), 0, 4 * n);
    fill(round);
    ASSERT_TRUE(isOk(device->run(commands.list())));
    ASSERT_TRUE(isOk(device->synchronise()));
    EXPECT_EQ(replayed, output());
    EXPECT_EQ(replayed[0], 2 * (3 * (199 + round) + 1));
    EXPECT_EQ(replayed[250], 3 * (250 + round) + 1);
  }
  // A launch that needs more scratch space moves it: the recording no longer holds.
  Commands larger(*kernels);
  larger.launch("reverse", 1, {x.span(), z.span()}, {200}, std::uint64_t(64) << 20);
  ASSERT_TRUE(isOk(device->run(larger.list())));
  auto holds = device->replay(**recording);
  ASSERT_TRUE(isOk(holds));
  EXPECT_FALSE(*holds);
}

TEST_P(DeviceConformance, TimesEveryCommand) {
  constexpr std::size_t n = 1 << 20;
  Integers x(*device, counting(n)), z(*device, n);
  Commands commands(*kernels);
  for (int i = 0; i < 3; ++i) {
    commands.launch("advance", n / 256, {x.span()}, {n});
    commands.copy(x.span(), z.span());
  }
  std::vector<CommandTime> times(6);
  ASSERT_TRUE(isOk(device->runProfiled(commands.list(), times)));
  double end = 0;
  for (const CommandTime &time : times) {
    EXPECT_GE(time.begin, end * 0.999);
    EXPECT_GT(time.seconds, 0);
    EXPECT_LT(time.seconds, 10);
    end = time.begin + time.seconds;
  }
  EXPECT_EQ(z.read()[0], 13);
}

TEST_P(DeviceConformance, ChecksTheShapeOfLaunches) {
  if (!isCuda()) {
    EXPECT_TRUE(isOk(kernels->find("add", {}, sum))); // blocks of threads mean nothing to a CPU
    EncodedTensorMap map;
    EXPECT_TRUE(fails(device->encode({}, map), ErrorCode::Unsupported, "no tensor maps"));
    return;
  }
  EXPECT_TRUE(
      fails(kernels->find("add", {.threads = 0}, sum), ErrorCode::Unsupported, "with 0 threads"));
  EXPECT_TRUE(
      fails(kernels->find("add", {.threads = 4096}, sum), ErrorCode::Unsupported, "it can have"));
  EXPECT_TRUE(fails(kernels->find("add", {.threads = 256, .sharedBytes = 1 << 20}, sum),
                    ErrorCode::Unsupported, "shared memory"));
  // More than 48 KiB must be asked for; a launch that overlaps is as good as one that does not.
  Integers x(*device, counting(512)), z(*device, 512);
  for (LaunchShape shape : {LaunchShape{.threads = 256, .sharedBytes = 60 << 10},
                            LaunchShape{.threads = 256, .overlap = true}}) {
    Commands commands(*kernels);
    commands.launch("add", 2, {x.span(), x.span(), z.span()}, {512}, 0, shape);
    ASSERT_TRUE(isOk(device->run(commands.list())));
    EXPECT_EQ(z.read()[511], 1022);
  }
}

TEST_P(DeviceConformance, TensorMapsCutTiles) {
  if (!isCuda())
    GTEST_SKIP() << "the CPU has no tensor maps";
  if (cuda::Fit fit = cuda::findDevice({9, 0, false, 12000}, cudaIndex); fit.index < 0)
    GTEST_SKIP() << "it needs " << fit.missing;
  auto code = device->load({tensorMapTestKernel, "tiles.ptx"});
  ASSERT_TRUE(isOk(code));
  constexpr std::size_t rows = 8, columns = 40;
  Integers source(*device, counting(rows * columns)), result(*device, 3 * 128);
  TensorMapShape shape;
  shape.type = ElementType::I32;
  shape.address = source.span().data;
  shape.rank = 2;
  shape.sizes[0] = columns;
  shape.sizes[1] = rows;
  shape.strideBytes[0] = 4 * columns;
  shape.box[0] = 16;
  shape.box[1] = rows;
  EncodedTensorMap map;
  ASSERT_TRUE(isOk(device->encode(shape, map)));
  Commands commands(**code);
  commands.launch("tiles", 3, {source.span(), result.span()}, {}, 0, {.threads = 128}, &map);
  ASSERT_TRUE(isOk(device->run(commands.list())));
  Values got = result.read();
  for (std::size_t w = 0; w < 3; ++w)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t i = 0; i < 16; ++i) {
        std::size_t column = 16 * w + i;
        auto expected = column < columns ? static_cast<std::int32_t>(row * columns + column) : 0;
        ASSERT_EQ(got[w * 128 + row * 16 + i], expected) << w << " " << row << " " << i;
      }
  shape.strideBytes[0] = 4 * columns + 4;
  EXPECT_FALSE(device->encode(shape, map).isOk());
  shape.type = ElementType::F4E2M1;
  EXPECT_TRUE(fails(device->encode(shape, map), ErrorCode::Unsupported, "f4e2m1"));
}

// In a process of its own: a GPU's context does not survive a failed kernel.
TEST_P(DeviceConformance, SaysWhichKernelFailed) {
  if (!isCuda())
    GTEST_SKIP() << "on the CPU a bad access ends the process";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto failing = [&](const char *wait) {
    setenv("MOERT_CUDA_SYNCHRONISE", wait, 1);
    std::shared_ptr<Device> own;
    std::unique_ptr<KernelSet> code;
    open(own);
    loadKernels(*own, code);
    Integers z(*own, 4);
    Commands commands(*code);
    commands.launch("number", 4, {z.span()}, {0, 1});
    commands.launch("fail", 1, {z.span()}, {});
    commands.launch("number", 4, {z.span()}, {0, 1});
    Status status = own->run(commands.list());
    if (status.isOk())
      status = own->synchronise();
    std::fprintf(stderr, "%s\n", status.toString().c_str());
    std::_Exit(status.isOk() ? 0 : 3);
  };
  EXPECT_EXIT(failing("1"), testing::ExitedWithCode(3), "command 1 'fail'.*ILLEGAL_ADDRESS");
  EXPECT_EXIT(failing("0"), testing::ExitedWithCode(3), "set MOERT_CUDA_SYNCHRONISE=1");
}
