#include "iomgr/admin/scrub_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <sstream>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/printable.h"

namespace graphlane {
namespace {

constexpr char kStateName[] = ".graphlane/scrub";
constexpr char kNewName[] = ".graphlane/scrub.new";
constexpr auto kWriteInterval = std::chrono::seconds(5);
constexpr size_t kStateTextMax = 1 << 20;
constexpr size_t kKeptProblemsMax = 1000;

}  // namespace

ScrubState::ScrubState(const Volume& volume, bool resumes) : volume_(volume) {
  if (!resumes) return;
  const Fd file = open_regular(volume.root_fd(), kStateName, O_RDONLY);
  std::string text(kStateTextMax, '\0');
  const Result<size_t> got =
      file ? read_full(file.get(), text.data(), text.size()) : Result<size_t>(last_errno());
  if (!got) return;
  text.resize(*got);
  std::istringstream lines(text);
  MutexLock lock(mu_);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('!')) {
      problems_.push_back(line.substr(1));
      continue;
    }
    std::istringstream words(line);
    uint32_t d = 0;
    std::string id;
    Place place;
    if (!(words >> d >> id >> place.part_offset)) return;
    const auto parsed = Uuid::parse(id);
    if (!parsed || d >= volume.device_count()) return;
    place.file_id = parsed->bytes;
    places_[d] = place;
  }
}

std::vector<std::string> ScrubState::problems() {
  MutexLock lock(mu_);
  return problems_;
}

void ScrubState::found(const std::string& problem) {
  MutexLock lock(mu_);
  if (problems_.size() < kKeptProblemsMax) problems_.push_back(printable(problem));
}

ScrubState::Place ScrubState::place(uint32_t device_index) {
  MutexLock lock(mu_);
  return places_[device_index];
}

void ScrubState::reached(uint32_t device_index, const Place& place) {
  MutexLock lock(mu_);
  places_[device_index] = place;
  if (std::chrono::steady_clock::now() - saved_ >= kWriteInterval) write();
}

void ScrubState::save() {
  MutexLock lock(mu_);
  write();
}

void ScrubState::finish() { (void)::unlinkat(volume_.root_fd(), kStateName, 0); }

void ScrubState::write() {
  saved_ = std::chrono::steady_clock::now();
  std::string text;
  for (uint32_t d = 0; d < volume_.device_count(); ++d) {
    text += fmt::format("{} {} {}\n", d, UuidText(Uuid{places_[d].file_id}).view(),
                        places_[d].part_offset);
  }
  for (const std::string& problem : problems_) text += "!" + problem + "\n";
  (void)::unlinkat(volume_.root_fd(), kNewName, 0);
  const Fd file(::openat(volume_.root_fd(), kNewName,
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !write_full(file.get(), text.data(), text.size())) return;
  (void)::renameat(volume_.root_fd(), kNewName, volume_.root_fd(), kStateName);
}

}  // namespace graphlane
