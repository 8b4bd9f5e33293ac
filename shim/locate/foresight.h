// Foresight: under `graphlane run`, mounts a volume that was not found at the start. This happens before the program
// gets a descriptor of it, and before it becomes a program without the library, which would read stubs.
//
//   where the command has a mount namespace   the process beside `graphlane run` mounts it (iomgr/server/mount_request.h)
//   where it has none                         the library serves its own program without a mount, and the other one
//                                             is started by `graphlane run` again
//
// Threads: everything is safe from any. A child by vfork only looks at programs. Keeps errno.
#pragma once

namespace graphlane {

// Call it with open(2)'s arguments before open(2). Mounts the volume that the path lies in.
void foresee(int directory, const char* path, int flags);

// How execve(2) is to be called; see foresee_program().
struct ProgramCall {
  const char* path;
  char* const* words;
  char* const* environment;
};

// Whether the library does not get into the program: static, Go, set-user-ID, musl's. False for a
// file that is no program.
bool is_blind(const char* path);

// Whether a word names a path in a volume that is not mounted.
bool names_unmounted(char* const* words);

// Call it when a striped file is opened without a mount, although `--no-mount` was not given. From now on io_uring and
// libaio are refused to the program. Returns 0, or an errno if the program has an io_uring already.
int serve_alone();

// Call it before a blind program starts. In a namespace its volumes are mounted when this returns. False: there is no
// namespace, and `graphlane run` should start the program (run_again()).
bool foresee_program(const ProgramCall& call);

// Fills the words for starting it by `graphlane run`: kRunAgainWords in front of the program's, and
// a null behind.
inline constexpr int kRunAgainWords = 8;
const char* run_again(const ProgramCall& call, const char** words);

}  // namespace graphlane
