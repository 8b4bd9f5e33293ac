#include "iomgr/base/files/rename_exchange.h"

#include <fcntl.h>

#include "tests/iomgr/refused_calls.h"
#include "tests/iomgr/volume_fixture.h"

namespace graphlane {
namespace {

namespace fs = std::filesystem;

class ExchangeNamesTest : public VolumeFixture {
 protected:
  void SetUp() override {
    VolumeFixture::SetUp();
    write(path("old/file"), "old");
    write(path("new/file"), "new");
    before_ = all_paths();
  }
  int exchange(const std::string& from, const std::string& to) const {
    return rename_exchange(AT_FDCWD, path(from), path(to));
  }
  void exchanges() const {
    EXPECT_EQ(exchange("new", "old"), 0);
    EXPECT_EQ(read(path("old/file")), "new");
    EXPECT_EQ(read(path("new/file")), "old");
    EXPECT_EQ(all_paths(), before_);
  }
  void leaves_all_as_it_was() const {
    EXPECT_EQ(exchange("missing", "old"), ENOENT);
    EXPECT_EQ(exchange("new", "missing"), ENOENT);
    EXPECT_EQ(read(path("old/file")), "old");
    EXPECT_EQ(read(path("new/file")), "new");
    EXPECT_EQ(all_paths(), before_);
  }

  std::vector<std::string> before_;
};

TEST_F(ExchangeNamesTest, ExchangesNames) { exchanges(); }

TEST_F(ExchangeNamesTest, ExchangesNamesWithoutKernelSupport) {
  without_rename_flags([this] { exchanges(); });
}

TEST_F(ExchangeNamesTest, AnErrorChangesNothing) { leaves_all_as_it_was(); }

// The old file was moved aside by then, and comes back.
TEST_F(ExchangeNamesTest, AnErrorChangesNothingWithoutKernelSupport) {
  without_rename_flags([this] { leaves_all_as_it_was(); });
}

TEST_F(ExchangeNamesTest, NamesAreBelowTheDirectory) {
  const Fd below(::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(rename_exchange(below.get(), "new", "old"), 0);
  without_rename_flags([&] { EXPECT_EQ(rename_exchange(below.get(), "new", "old"), 0); });
  EXPECT_EQ(read(path("old/file")), "old");
}

}  // namespace
}  // namespace graphlane
