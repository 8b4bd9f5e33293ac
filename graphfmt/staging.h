// Staging: builds a file or directory beside its final name and renames it when
// it is complete, so that nothing half-made ever has that name.
//
//   /data/.grid.partial-4711   while building, locked (flock) by this process
//   /data/grid                 after commit()
//
// Destroying an uncommitted Staging removes what was built. After a kill the leftover has no lock
// holder, by which the next Staging for the same name recognizes it and removes it.
#pragma once

#include <string>

#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::graphfmt {

class Staging {
 public:
  enum class Kind { kFile, kDirectory };

  // Whether what is at `path`, if anything, may be replaced. EEXIST: not without `overwrite`, or
  // it is of another kind; ENOTDIR.
  static Outcome<void> may_replace(const std::string& path, Kind kind, bool overwrite);
  // Errors: as may_replace().
  static Outcome<Staging> create(const std::string& final_path, Kind kind, bool overwrite);

  Staging() = default;
  Staging(Staging&& other) noexcept { swap(other); }
  Staging& operator=(Staging&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Staging();

  const std::string& path() const { return path_; }              // where to build
  const std::string& final_path() const { return final_path_; }  // symlinks resolved
  int fd() const { return fd_.get(); }                           // a file: open for writing

  // An error with `shown`, what the user calls the output, for the place where it is built.
  Error with_final_name(Error error, const std::string& shown) const;

  // Renames; what is there, if it may be replaced, is removed. Errors: as may_replace().
  Outcome<void> commit();

 private:
  void swap(Staging& other) noexcept;
  int replace();

  std::string path_;  // empty: nothing to remove
  std::string final_path_;
  Kind kind_ = Kind::kFile;
  bool overwrite_ = false;
  Fd fd_;  // holds the lock
};

}  // namespace graphlane::graphfmt
