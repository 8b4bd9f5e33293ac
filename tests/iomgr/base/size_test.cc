#include "iomgr/base/size.h"

#include <gtest/gtest.h>

namespace graphlane {
namespace {

struct SizeRow {
  const char* text;
  uint64_t bytes;
};

TEST(SizeTest, ReadsSizesAsDdAndFioDo) {
  for (const SizeRow& row :
       {SizeRow{"0", 0}, SizeRow{"4096", 4096}, SizeRow{"64K", 65536}, SizeRow{"64k", 65536},
        SizeRow{"12M", 12582912}, SizeRow{"1G", 1073741824}, SizeRow{"2T", 2199023255552},
        SizeRow{"10MB", 10000000}, SizeRow{"3kB", 3000}, SizeRow{"1GiB", 1073741824},
        SizeRow{"7B", 7}}) {
    const Outcome<uint64_t> size = parse_size(row.text);
    ASSERT_TRUE(size) << row.text;
    EXPECT_EQ(*size, row.bytes) << row.text;
  }
}

TEST(SizeTest, RejectsInvalidSizesAndNamesThem) {
  for (const char* text : {"", "M", "-1", "1.5M", "12X", "12MM", "1 M", "0x10",
                           "9223372036854775808", "9000000T", "99999999999999999999"}) {
    const Outcome<uint64_t> size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_NE(size.error().text.find(std::string("'") + text + "'"), std::string::npos);
  }
}

TEST(SizeTest, PrintsExactSizesShortAndOthersWithThreeDigits) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(4095), "4.00 KiB");
  EXPECT_EQ(format_size(12u << 20), "12M");
  EXPECT_EQ(format_size(100000123), "95.4 MiB");
  EXPECT_EQ(format_size(uint64_t{1} << 40), "1T");
}

}  // namespace
}  // namespace graphlane
