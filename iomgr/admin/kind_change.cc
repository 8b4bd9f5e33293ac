#include "iomgr/admin/kind_change.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "iomgr/admin/transfer_staging.h"
#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/file_lease.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/sum/part_sums.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

// A process that has looked the name up before the exchange opens the file within this time, or meets a
// lease. (It would have to be suspended between two instructions of open(2) to need longer.)
constexpr auto kOpenTime = std::chrono::milliseconds(2);

// Parts that are opened while it lives compare their reads with the checksums. A plain copy of damaged
// bytes would hide the damage.
class VerifiedOpens {
 public:
  VerifiedOpens() : before_(reads_are_verified.exchange(true)) {}
  ~VerifiedOpens() { reads_are_verified = before_; }
  VerifiedOpens(const VerifiedOpens&) = delete;
  VerifiedOpens& operator=(const VerifiedOpens&) = delete;

 private:
  const bool before_;
};

bool is_same_file(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

// The copy of a file in the making, and its exchange with the file.
class KindJob {
 public:
  KindJob(const Volume& volume, const TreePlace& place, const KindChangeOptions& options)
      : volume_(volume), place_(place), options_(options) {}

  Outcome<KindChange> run(FileKind to) {
    file_ = only_regular(open_place(place_, O_RDONLY | kNoWait));
    if (!file_ && (errno == EAGAIN || errno == ENOENT)) return KindChange::kBusy;
    if (!file_ || ::fstat(file_.get(), &info_) != 0) return place_.error(errno, "cannot open");
    Layout layout;
    const Result<StubVerdict> verdict = inspect_stub(file_.get(), &layout);
    if (!verdict) return place_.error(verdict.error().code, "cannot read");
    const bool is_striped = *verdict == StubVerdict::kStub;
    if (!is_striped && *verdict != StubVerdict::kNotAStub) {
      return make_error(EIO, "{}: {}", place_.shown, describe(*verdict));
    }
    if (is_striped == (to == FileKind::kStriped) || !is_wanted(to)) {
      (void)wish_kind(file_.get(), std::nullopt);
      return KindChange::kRight;
    }
    if (Outcome<void> permitted = check_permitted(); !permitted) return permitted.error();
    const Outcome<VolumeLock> lock = VolumeLock::take(volume_, VolumeLock::kShared);
    if (!lock) return busy_or(lock.error());
    Outcome<StagingDirectory> stage = StagingDirectory::create(volume_);
    if (!stage) return stage.error();
    stage_ = &*stage;
    copy_place_ = stage->top();
    return is_striped ? make_plain(layout) : make_striped();
  }

 private:
  // Whether the name still asks for this kind.
  bool is_wanted(FileKind to) const {
    const std::string name = std::filesystem::path(place_.path).filename().string();
    return to == FileKind::kStriped
               ? volume_.policy().wants(name, static_cast<uint64_t>(info_.st_size))
               : !volume_.policy().wants_new(name);
  }

  Outcome<void> check_permitted() const {
    if (Outcome<void> writable = require_writable(volume_); !writable) return writable;
    if (info_.st_nlink > 1) return keeps("it has several names");
    if (has_acl(file_.get())) return keeps("a striped file has no access control list");
    return {};
  }

  Error keeps(std::string_view why, int code = EOPNOTSUPP) const {
    return make_error(code, "{}: keeps its kind: {}", place_.shown, why);
  }

  static Outcome<KindChange> busy_or(const Error& error) {
    if (error.code == EBUSY || error.code == EAGAIN) return KindChange::kBusy;
    return error;
  }

  Outcome<KindChange> make_striped() {
    Result<std::unique_ptr<FileLease>> lease = FileLease::take(file_.get());
    if (!lease && lease.error().code == EAGAIN) return KindChange::kBusy;
    if (!lease) {
      return keeps(
          fmt::format("no lease tells who has it open: {}", error_text(lease.error().code)),
          lease.error().code);
    }
    if (::fstat(file_.get(), &info_) != 0) return place_.error(errno, "cannot read");
    TransferState state;
    state.go_on = [&]() -> Outcome<void> {
      if ((*lease)->is_broken()) return make_error(EBUSY, "{}: is being written", place_.shown);
      return options_.go_on ? options_.go_on() : Outcome<void>();
    };
    StripedCopies copies(volume_, &state);
    Outcome<void> made =
        copies.add(file_.get(), place_, info_, copy_place_, volume_.stripe_depth_bytes());
    if (made) made = open_copy();  // syncs it
    if (made) made = copies.sync();
    if (!made) return busy_or(made.error());
    if (!(*lease)->exclude() || !is_unchanged()) return KindChange::kBusy;
    Outcome<KindChange> done = exchange([&] {
      std::this_thread::sleep_for(kOpenTime);
      return !(*lease)->is_awaited();
    });
    if (!done || *done != KindChange::kDone) return done;
    // Must precede the end of the lease: a mount tells by the missing name that this inode is not the
    // file any more. The filesystem's journal keeps the order of the two changes.
    if (Outcome<void> removed = remove_old(); !removed) return removed.error();
    lease->reset();
    if (Outcome<void> synced = sync_names(); !synced) return synced.error();
    return KindChange::kDone;
  }

  Outcome<KindChange> make_plain(const Layout& layout) {
    struct statvfs room;
    if (::fstatvfs(volume_.root_fd(), &room) == 0 &&
        room.f_bavail / 2 < current_layout(volume_, layout).logical_size / room.f_frsize) {
      return keeps("the volume's own filesystem would be more than half full with it", ENOSPC);
    }
    const VerifiedOpens verified;
    // Closes it, if a dead writer has left it open.
    const Outcome<Layout> closed = close_striped(layout);
    if (!closed) return busy_or(closed.error());
    Fd stub = reopen(file_.get(), O_RDONLY);
    if (!stub) return place_.error(errno, "cannot open");
    hold_parts(stub.get());
    do {  // else a write of this instant would not show in the ctime
      std::this_thread::sleep_for(kOpenTime);
      if (::fstat(stub.get(), &info_) != 0) return place_.error(errno, "cannot read");
    } while (is_fresh(ctime_ns_of(info_)));
    {
      auto file = StripedFile::open(volume_, stub.get(), *closed, place_.shown);
      if (!file) return file.error();
      TransferState state;
      state.go_on = [&]() -> Outcome<void> {
        if (is_being_changed(stub.get())) {
          return make_error(EBUSY, "{}: is being written", place_.shown);
        }
        return options_.go_on ? options_.go_on() : Outcome<void>();
      };
      Outcome<void> made = copy_striped(volume_, **file, stub.get(), copy_place_, &state);
      if (made) made = open_copy();
      if (!made) return busy_or(made.error());
    }
    stub.reset();
    return put_plain(*closed);
  }

  // The file's layout, in state `closed`. EBUSY: a process has it open.
  Outcome<Layout> close_striped(const Layout& layout) {
    auto live = take(layout);
    if (!live) return live.error();
    if ((*live)->needs_close()) {
      const uint64_t change_count = (*live)->change_count();
      Result<void> closed = (*live)->sync(/*data_only=*/true);
      if (closed) closed = (*live)->close(change_count);
      if (!closed) return place_.error(closed.error().code, "cannot close");
    }
    Layout now;
    const Result<StubVerdict> verdict = inspect_stub((*live)->stub_fd(), &now);
    if (!verdict || *verdict != StubVerdict::kStub) return place_.error(EBUSY, "is in use");
    return now;
  }

  // While it lives no process writes the file. EBUSY: a process has it open.
  Outcome<std::shared_ptr<LiveFile>> take(const Layout& layout) {
    Fd stub = reopen(file_.get(), O_RDWR);
    if (!stub) return place_.error(errno, "cannot change");
    auto live = LiveFile::open(volume_, layout, std::move(stub), place_.shown);
    if (!live) return live.error();
    if (is_stub_locked((*live)->file()->held_stub(), StubLock::kParts, F_WRLCK)) {
      return place_.error(EBUSY, "is in use");
    }
    return live;
  }

  Outcome<KindChange> put_plain(const Layout& layout) {
    auto live = take(layout);
    if (!live) return busy_or(live.error());
    const int stub_fd = (*live)->file()->held_stub();
    // From here on an open waits.
    if (!lock_stub(stub_fd, StubLock::kParts, F_WRLCK)) return KindChange::kBusy;
    Layout now;
    const Result<StubVerdict> verdict = inspect_stub(stub_fd, &now);
    if (!verdict || *verdict != StubVerdict::kStub || now != layout || !is_unchanged()) {
      return KindChange::kBusy;
    }
    Outcome<KindChange> done = exchange([] { return true; });
    if (!done || *done != KindChange::kDone) return done;
    // The parts lie on other filesystems, so the new name must be durable before they go.
    if (Outcome<void> synced = sync_names(); !synced) return synced.error();
    if (Outcome<void> removed = remove_old(); !removed) return removed.error();
    if (Outcome<void> removed = remove_parts(volume_, layout.file_id); !removed) {
      return removed.error();
    }
    return KindChange::kDone;
  }

  // Opens the copy, makes it and its name durable, and compares its attributes with the file's.
  Outcome<void> open_copy() {
    copy_ = only_regular(open_place(copy_place_, O_RDONLY | kNoWait));
    if (!copy_ || ::fsync(copy_.get()) != 0 || !sync_directory_of(copy_place_)) {
      return place_.error(errno, "its copy cannot be written");
    }
    if (have_same_attributes(file_.get(), copy_.get())) return {};
    if (!is_unchanged()) return place_.error(EBUSY, "was changed meanwhile");
    return keeps("this process may not give a copy the same owner, mode or attributes", EPERM);
  }

  // Whether no attribute has changed since info_ was taken.
  bool is_unchanged() const {
    struct stat now;
    return ::fstat(file_.get(), &now) == 0 && ctime_ns_of(now) == ctime_ns_of(info_) &&
           now.st_nlink == 1;
  }

  // Gives the copy the file's name. `is_alone` says afterwards whether no open waits for the old inode.
  // kBusy: the names are as they were.
  template <class IsAlone>
  Outcome<KindChange> exchange(const IsAlone& is_alone) {
    if (Result<void> exchanged = exchange_names(); !exchanged) {
      const int code = exchanged.error().code;
      if (code == ENOENT) return KindChange::kBusy;  // it was renamed or removed
      return keeps(fmt::format("the names cannot be exchanged: {}", error_text(code)), code);
    }
    struct stat moved;
    const ShortPlace old(copy_place_);
    const bool is_it =
        ::fstatat(old.directory_fd(), old.path(), &moved, AT_SYMLINK_NOFOLLOW) == 0 &&
        is_same_file(moved, info_);
    if (is_it && is_alone() && moved.st_nlink == 1 &&
        have_same_attributes(file_.get(), copy_.get())) {
      if (options_.exchanged) options_.exchanged();
      return KindChange::kDone;
    }
    Result<void> back = exchange_names();
    if (!back &&
        back.error().code != ENOENT) {  // ENOENT: the name was removed, and the file with it
      stage_->keep();
      return place_.error(back.error().code,
                          "cannot be moved back from " + copy_place_.shown + ", where it is now");
    }
    return KindChange::kBusy;
  }

  Result<void> exchange_names() const {
    const ShortPlace copy(copy_place_), file(place_);
    return ::renameat2(copy.directory_fd(), copy.path(), file.directory_fd(), file.path(),
                       RENAME_EXCHANGE) == 0
               ? Result<void>()
               : last_errno();
  }

  Outcome<void> remove_old() const {
    const ShortPlace old(copy_place_);
    if (::unlinkat(old.directory_fd(), old.path(), 0) == 0) return {};
    return copy_place_.error(errno, "cannot remove");
  }

  Outcome<void> sync_names() const {
    if (sync_directory_of(place_) && sync_directory_of(copy_place_)) return {};
    return place_.error(errno, "its new name cannot be synced");
  }

  static bool sync_directory_of(const TreePlace& place) {
    const ShortPlace name(place);
    const std::string above = std::filesystem::path(name.path()).parent_path().string();
    const Fd directory(::openat(name.directory_fd(), above.empty() ? "." : above.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory && (::fsync(directory.get()) == 0 || errno == EINVAL);
  }

  const Volume& volume_;
  const TreePlace& place_;
  const KindChangeOptions& options_;
  Fd file_;
  struct stat info_{};  // of file_, from before the copy
  StagingDirectory* stage_ = nullptr;
  TreePlace copy_place_;
  Fd copy_;
};

}  // namespace

Outcome<KindChange> change_kind(const Volume& volume, const TreePlace& place, FileKind to,
                                const KindChangeOptions& options) {
  return KindJob(volume, place, options).run(to);
}

}  // namespace graphlane
