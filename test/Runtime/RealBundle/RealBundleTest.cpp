// A bundle that moec compiled, with its weights inside, byte by byte damaged: whatever is changed
// is an error that says so, and nothing crashes.
#include "runtime/session/Session.h"
#include "test/Runtime/Support.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

using namespace moert;
using namespace moert::test;

namespace {

class RealBundle : public testing::Test {
protected:
  void SetUp() override {
    const char *source = std::getenv("MOERT_TEST_BUNDLE");
    ASSERT_NE(source, nullptr) << "MOERT_TEST_BUNDLE must name a bundle with its weights inside";
    std::filesystem::copy(source, path(), std::filesystem::copy_options::recursive);
    auto bundle = Bundle::open(path());
    ASSERT_TRUE(isOk(bundle));
    manifest = (*bundle)->manifest();
  }

  std::string path() const { return folder / "b"; }

  void writeByte(const std::string &file, std::uint64_t offset, char byte) {
    std::fstream stream(path() + "/" + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(byte);
    ASSERT_TRUE(stream.flush());
  }

  /// Loads the model and computes a few tokens.
  Status loadAndStep() {
    MOERT_ASSIGN_OR_RETURN(auto bundle, Bundle::open(path()));
    MOERT_ASSIGN_OR_RETURN(auto model, Model::load(bundle, {.threads = 1}));
    MOERT_ASSIGN_OR_RETURN(Session session, Session::create(model));
    MOERT_ASSIGN_OR_RETURN(Sequence sequence, session.createSequence());
    std::int32_t tokens[] = {0, 5, 6, 7, 1};
    StepPart part{sequence, tokens};
    return session.step({&part, 1}).status();
  }

  TemporaryFolder folder;
  moec::bundle::Manifest manifest;
};

TEST_F(RealBundle, LoadsAndRuns) { ASSERT_TRUE(isOk(loadAndStep())); }

TEST_F(RealBundle, EveryTruncationAndChangeOfTheManifestIsAnError) {
  std::string file = path() + "/manifest.moeb", good = readFile(file);
  for (std::size_t i = 0; i < good.size(); ++i) {
    writeByte("manifest.moeb", i, static_cast<char>(good[i] ^ (1 << i % 8)));
    ASSERT_FALSE(Bundle::open(path()).isOk()) << "byte " << i;
    writeByte("manifest.moeb", i, good[i]);
  }
  for (std::size_t length = good.size(); length-- > 0;) {
    std::filesystem::resize_file(file, length);
    ASSERT_FALSE(Bundle::open(path()).isOk()) << "length " << length;
  }
}

TEST_F(RealBundle, ChangedCodeIsAnError) {
  ASSERT_GT(manifest.files_size(), 0);
  for (const moec::bundle::File &file : manifest.files()) {
    auto bundle = Bundle::open(path());
    ASSERT_TRUE(isOk(bundle));
    std::string good = readFile(path() + "/" + file.path());
    ASSERT_EQ(good.size(), file.bytes());
    // All of the ELF header; of the rest, whose digest is one and the same, a thousand bytes, or all
    // of them when there is time.
    std::size_t step = std::getenv("MOEC_TEST_EVERY_BYTE") ? 1 : good.size() / 1000 + 1;
    for (std::size_t i = 0; i < good.size(); i += i < 64 ? 1 : step) {
      writeByte(file.path(), i, static_cast<char>(good[i] ^ (1 << i % 8)));
      ASSERT_TRUE(fails((*bundle)->readFile(file.path()), ErrorCode::InvalidData, "digest"))
          << file.path() << " byte " << i;
      writeByte(file.path(), i, good[i]);
    }
    // The text of the program is there for people; code is what a model loads.
    bool isLoaded = file.path().starts_with("code/");
    for (std::size_t i : {std::size_t(0), good.size() / 2, good.size() - 1}) {
      writeByte(file.path(), i, static_cast<char>(good[i] ^ 1));
      EXPECT_EQ(loadAndStep().isOk(), !isLoaded) << file.path() << " byte " << i;
      writeByte(file.path(), i, good[i]);
    }
    for (std::size_t length = 0; length < good.size(); length += step) {
      std::filesystem::resize_file(path() + "/" + file.path(), length);
      ASSERT_FALSE((*bundle)->readFile(file.path()).isOk()) << file.path() << " length " << length;
      ASSERT_FALSE(Bundle::open(path()).isOk()) << file.path() << " length " << length;
    }
    writeFile(path() + "/" + file.path(), good);
  }
  EXPECT_TRUE(isOk(loadAndStep()));
}

TEST_F(RealBundle, ChangedWeightsAreNamedAndNeverCrash) {
  std::mt19937 random(1);
  for (const moec::bundle::Weight &weight : manifest.weights()) {
    const moec::bundle::WeightFile &file = manifest.weight_files(weight.file());
    ASSERT_TRUE(file.inside());
    std::string good = readFile(path() + "/" + file.path()), changed = good;
    // All bits set, which is NaN in most formats, and anything.
    for (bool noise : {false, true}) {
      for (std::uint64_t i = 0; i < weight.bytes(); ++i)
        changed[weight.offset() + i] = static_cast<char>(noise ? random() : 0xff);
      writeFile(path() + "/" + file.path(), changed);
      auto bundle = Bundle::open(path());
      ASSERT_TRUE(isOk(bundle));
      EXPECT_TRUE(fails((*bundle)->verify(), ErrorCode::InvalidData, "'" + weight.name() + "'"));
      EXPECT_TRUE(isOk(loadAndStep())) << weight.name();
    }
    writeFile(path() + "/" + file.path(), good);
    // One byte is enough to be named.
    std::uint64_t offset = weight.offset() + random() % weight.bytes();
    writeByte(file.path(), offset, static_cast<char>(good[offset] ^ 0x10));
    auto bundle = Bundle::open(path());
    ASSERT_TRUE(isOk(bundle));
    EXPECT_TRUE(fails((*bundle)->verify(), ErrorCode::InvalidData, "'" + weight.name() + "'"));
    writeByte(file.path(), offset, good[offset]);
  }
}

} // namespace
