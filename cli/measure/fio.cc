#include "cli/measure/fio.h"

#include <vector>

#include "cli/measure/child.h"
#include "iomgr/base/json.h"

namespace graphlane::cli {
namespace {

Outcome<Finished> run(std::vector<std::string> words) {
  Outcome<Finished> finished = run_child(std::move(words));
  if (!finished && finished.error().code == ENOENT) {
    return make_error(ENOENT,
                      "fio: not found in $PATH; calibrate measures with it: install the "
                      "package fio");
  }
  return finished;
}

// The first line that fio printed instead of a result.
std::string complaint(const Finished& said) {
  for (const std::string* text : {&said.err, &said.out}) {
    const std::string line = text->substr(0, text->find('\n'));
    if (!line.empty() && !line.starts_with('{')) return line;
  }
  return fmt::format("ended with wait status {}", said.status);
}

Outcome<FioSpeed> parse_result(const Finished& said, const std::string& file) {
  // Warnings precede the JSON.
  const size_t begin = std::min(said.out.find('{'), said.out.size());
  const std::optional<Json> result = Json::parse(std::string_view(said.out).substr(begin));
  const Json* jobs = result ? result->find("jobs") : nullptr;
  if (said.status != 0 || jobs == nullptr) {
    return make_error(EIO, "{}: fio cannot measure it: {}", file, complaint(said));
  }
  FioSpeed speed;
  for (const Json& job : jobs->elements()) {
    const Json& read = job.at_or_null("read");
    speed.bytes_per_second += read.at_or_null("bw_bytes").as_double().value_or(0);
    speed.ios_per_second += read.at_or_null("iops").as_double().value_or(0);
  }
  if (speed.bytes_per_second <= 0) {
    return make_error(EIO, "{}: fio read nothing (a longer --runtime may help)", file);
  }
  return speed;
}

}  // namespace

Outcome<void> check_fio() {
  const Outcome<Finished> said = run({"fio", "--version"});
  if (!said) return said.error();
  if (said->status != 0) return make_error(EIO, "fio: {}", complaint(*said));
  return {};
}

Outcome<FioSpeed> run_fio(const FioReads& reads) {
  const uint64_t share =
      reads.file_bytes / reads.stream_count / reads.block_bytes * reads.block_bytes;
  const uint32_t depth_each = (reads.depth + reads.stream_count - 1) / reads.stream_count;
  const Outcome<Finished> said =
      run({"fio", "--output-format=json", "--name=calibrate", "--readonly", "--thread",
           "--group_reporting", "--ioengine=libaio", "--direct=1", "--time_based",
           "--allow_file_create=0", "--filename=" + reads.file,
           fmt::format("--rw={}", reads.at_random ? "randread" : "read"),
           fmt::format("--bs={}", reads.block_bytes), fmt::format("--iodepth={}", depth_each),
           fmt::format("--numjobs={}", reads.stream_count), fmt::format("--size={}", share),
           fmt::format("--offset_increment={}", reads.stream_count > 1 ? share : 0),
           fmt::format("--runtime={}ms", reads.duration.count())});
  if (!said) return said.error();
  return parse_result(*said, reads.file);
}

}  // namespace graphlane::cli
