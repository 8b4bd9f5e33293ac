// MountRequest: a preloaded program asks `graphlane run` to mount a volume that was not found at
// the start. It waits for the mount before it opens a file of the volume, or before it executes
// a program that does not load the library.
//   program ── request, text ──► the process beside `graphlane run` (fuse/mount/later_mounts.h)
//           ◄── reply ────────── mounted over its own directory, in the program's mount namespace
//
// The socket is an abstract one (server_socket.h); its name is in the environment. Both ends run
// as one user. The program does not trust the reply: it looks at the file again.
#pragma once

#include <cstdint>

namespace graphlane {

inline constexpr char kMounterVariable[] = "GRAPHLANE_MOUNTER";  // the socket's name
// set: by the preload library alone
inline constexpr char kNoMountVariable[] = "GRAPHLANE_NO_MOUNT";
// the graphlane command's own file
inline constexpr char kProgramVariable[] = "GRAPHLANE_PROGRAM";
// gets a byte for each report (cli/run/report_watch.h)
inline constexpr char kReportedVariable[] = "GRAPHLANE_REPORTED";

// the file to which the library appends the paths of files that it changes without a mount, each with
// its NUL (cli/run/closer.h); empty: none
inline constexpr char kChangesVariable[] = "GRAPHLANE_CHANGES";

struct MountRequest {
  static constexpr uint32_t kMagic = 0x31524d47;
  static constexpr uint32_t kTextMax = 2 << 20;
  enum Kind : uint32_t {
    kPath = 1,     // a volume's directory, or a path in it
    kCommand = 2,  // a program's file, its words, its environment: each with its NUL
  };
  uint32_t magic = kMagic;
  uint32_t kind = kPath;
  uint32_t word_count = 0;  // of kCommand
  uint32_t text_bytes = 0;  // follow
};

struct MountReply {
  uint32_t magic = MountRequest::kMagic;
  int32_t error = 0;  // 0: the volumes that were found are mounted
};

}  // namespace graphlane
