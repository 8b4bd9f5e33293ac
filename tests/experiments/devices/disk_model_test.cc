#include "experiments/devices/disk_model.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/sizes.h"

namespace disk_model {
namespace {

using graphlane::kMiB;

// A disk with 1 MB a track and a turn of 10 ms.
Parameters round_numbers() {
  return {.bandwidth_bytes_per_second = 100e6,
          .seek_seconds_min = 0.001,
          .seek_seconds_avg = 0.008,
          .seek_seconds_max = 0.015,
          .rpm = 6000,
          .stroke_bytes = 10e9,
          .buffer_bytes = 10e6,
          .dilation = 1};
}

// Total seconds of streams that alternate, a chunk each.
double interleaved_seconds(const Parameters& parameters, uint64_t chunk_bytes, int stream_count) {
  DiskModel model(parameters);
  double end_seconds = 0;
  for (uint64_t turn = 0; turn < 256; ++turn) {
    for (int stream = 0; stream < stream_count; ++stream) {
      const uint64_t offset = static_cast<uint64_t>(stream) * 1000 * kMiB + turn * chunk_bytes;
      end_seconds = model.serve({end_seconds, offset, chunk_bytes}).end_seconds;
    }
  }
  return end_seconds;
}

TEST(DiskModelTest, SequentialStreamHasTheBandwidth) {
  const double seconds = interleaved_seconds(round_numbers(), kMiB, 1);
  EXPECT_NEAR(256 * kMiB / seconds, 100e6, 1);
}

TEST(DiskModelTest, ALateSequentialStreamLosesNothing) {
  DiskModel model(round_numbers());
  double end_seconds = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    end_seconds = model.serve({end_seconds + 0.0005, i * kMiB, kMiB}).end_seconds;
  }
  EXPECT_NEAR(end_seconds, 100 * kMiB / 100e6 + 0.0005, 1e-9);
}

TEST(DiskModelTest, DiskReadsOnNoFurtherThanItsBuffer) {
  DiskModel model(round_numbers());
  model.serve({0, 0, 1'000'000});
  // After a second 10 MB are buffered; the eleventh is still to be read.
  EXPECT_NEAR(model.serve({1, 1'000'000, 11'000'000}).end_seconds, 1.01, 1e-9);
}

TEST(DiskModelTest, TwoStreamsPayForEveryTurn) {
  for (const uint64_t chunk : {kMiB, 4 * kMiB, 24 * kMiB}) {
    const double alone = 2 * interleaved_seconds(round_numbers(), chunk, 1);
    const double together = interleaved_seconds(round_numbers(), chunk, 2);
    // At least a seek; at most the longest seek with a whole turn of the platter.
    EXPECT_GT(together, alone + 510 * 0.001) << chunk;
    EXPECT_LT(together, alone + 512 * (0.015 + 0.010)) << chunk;
  }
}

TEST(DiskModelTest, SeeksAreThoseOfTheDataSheet) {
  const DiskModel model(round_numbers());
  EXPECT_EQ(model.seek_seconds(0, 999'999), 0);
  EXPECT_NEAR(model.seek_seconds(0, 1e6), 0.001, 1e-9);
  EXPECT_NEAR(model.seek_seconds(0, 10e9), 0.015, 1e-5);
  EXPECT_EQ(model.seek_seconds(3e9, 7e9), model.seek_seconds(7e9, 3e9));
  std::mt19937 random(1);
  std::uniform_real_distribution<double> anywhere(0, 10e9);
  double sum = 0;
  for (int i = 0; i < 100'000; ++i) sum += model.seek_seconds(anywhere(random), anywhere(random));
  EXPECT_NEAR(sum / 100'000, 0.008, 0.0002);
}

TEST(DiskModelTest, SeeksGrowWithDistance) {
  for (const Parameters& parameters : {round_numbers(), Parameters{}}) {
    const DiskModel model(parameters);
    double before = 0;
    for (double bytes = 3e6; bytes < parameters.stroke_bytes; bytes *= 1.1) {
      EXPECT_GE(model.seek_seconds(0, bytes), before) << bytes;
      before = model.seek_seconds(0, bytes);
    }
  }
}

TEST(DiskModelTest, SkippingInsideATrackTakesAsLongAsReadingIt) {
  DiskModel model(round_numbers());
  model.serve({0, 0, 100'000});
  EXPECT_NEAR(model.serve({0, 300'000, 100'000}).rotation_seconds, 0.002, 1e-9);
}

TEST(DiskModelTest, SectorJustMissedComesBackAfterOneTurn) {
  DiskModel model(round_numbers());
  model.serve({0, 0, 4096});
  EXPECT_NEAR(model.serve({0, 0, 4096}).rotation_seconds, 0.010 - 4096 / 100e6, 1e-9);
}

TEST(DiskModelTest, RotationIsHalfATurnOnAverage) {
  DiskModel model(round_numbers());
  std::mt19937 random(1);
  double end_seconds = 0, sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Service service = model.serve({end_seconds, random() % 2'000'000 * 4096ULL, 4096});
    sum += service.rotation_seconds;
    EXPECT_LT(service.rotation_seconds, 0.010);
    end_seconds = service.end_seconds;
  }
  EXPECT_NEAR(sum / 10'000, 0.005, 0.0003);
}

TEST(DiskModelTest, OneIoAtATimeInOrderOfArrival) {
  DiskModel model(round_numbers());
  const double first = model.serve({0, 0, kMiB}).end_seconds;
  const Service second = model.serve({0, 500 * kMiB, kMiB});
  EXPECT_NEAR(second.end_seconds,
              first + second.seek_seconds + second.rotation_seconds + second.transfer_seconds,
              1e-9);
}

Parameters flash() {
  Parameters parameters = round_numbers();
  parameters.has_head = false;
  parameters.ios_per_second = 10'000;
  return parameters;
}

TEST(DiskModelTest, SsdHasNoSeeks) {
  for (const int stream_count : {1, 2, 7}) {
    const double seconds = interleaved_seconds(flash(), kMiB, stream_count);
    EXPECT_NEAR(stream_count * 256 * kMiB / seconds, 100e6, 1);
  }
}

TEST(DiskModelTest, SsdHasItsIosPerSecond) {
  DiskModel model(flash());
  EXPECT_NEAR(model.serve({0, 500 * kMiB, 4096}).end_seconds, 1e-4, 1e-9);
  EXPECT_NEAR(model.serve({0, 0, 4096}).end_seconds, 2e-4, 1e-9);
}

TEST(DiskModelTest, SsdServesNothingInAdvance) {
  DiskModel model(flash());
  double end_seconds = model.serve({0, 0, kMiB}).end_seconds;
  for (const double idle_seconds : {0.001, 1.0, 100.0}) {
    const double arrival_seconds = end_seconds + idle_seconds;
    end_seconds = model.serve({arrival_seconds, kMiB, kMiB}).end_seconds;
    EXPECT_NEAR(end_seconds, arrival_seconds + kMiB / 100e6, 1e-9);
  }
}

TEST(DiskModelTest, AReadInAnSsdsQueueLosesNoTime) {
  DiskModel model(flash());
  const double first = model.serve({0, 0, kMiB}).end_seconds;
  EXPECT_NEAR(model.serve({first + 50e-6, 0, kMiB}).end_seconds, 2 * first, 1e-9);
}

TEST(DiskModelTest, DilationIsOneFactorOnEverything) {
  for (Parameters parameters : {round_numbers(), flash()}) {
    for (const int stream_count : {1, 2, 3}) {
      parameters.dilation = 1;
      const double seconds = interleaved_seconds(parameters, kMiB, stream_count);
      parameters.dilation = 8;
      EXPECT_NEAR(interleaved_seconds(parameters, kMiB, stream_count), 8 * seconds, 1e-6);
    }
  }
}

}  // namespace
}  // namespace disk_model
