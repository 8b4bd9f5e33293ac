// Foresight: under `graphlane run`, mounts a volume that was not found at the start. It does so
// before the program gets a descriptor of it, and before the process becomes a program without the
// library, which would read stubs.
//
//   with a mount namespace      `graphlane run` mounts it (iomgr/server/mount_request.h)
//
//   without a mount namespace   the library serves its program without a mount; another program is
//                               started by a new `graphlane run`
//
// Threads: everything is safe from any. A vfork() child only looks at programs and their words.
// Keeps errno.
#pragma once

namespace graphlane::shim {

// Call it before open(2), with its arguments. Mounts the volume that contains the path.
void foresee(int directory, const char* path, int flags);

// The arguments of execve(2); see foresee_program().
struct ProgramCall {
  const char* path;
  char* const* words;
  char* const* environment;
};

// Whether the program does not load the library: static, Go, set-user-ID, musl. False for a file
// that is no program.
bool is_blind(const char* path);

// Whether the preload library will be in the program: false for a blind one, and for one that gets
// an environment without LD_PRELOAD.
bool gets_library(const char* path, char* const* environment);

// Whether an argument names a path in an unmounted volume.
bool names_unmounted(char* const* words);

// Call it when a striped file is opened without a mount, but `--no-mount` was not given. From now
// on io_uring and libaio fail. Returns 0, or an errno if the program has an io_uring already.
int serve_alone();

// Call it before a program starts that the library will not be in. In a namespace it returns once the volumes are mounted.
// False: there is no namespace, and `graphlane run` must start the program (run_again()).
bool foresee_program(const ProgramCall& call);

// Fills the arguments for starting it by `graphlane run`: kRunAgainWords before the program's own,
// and a null after them.
inline constexpr int kRunAgainWords = 8;
const char* run_again(const ProgramCall& call, const char** words);

}  // namespace graphlane::shim
