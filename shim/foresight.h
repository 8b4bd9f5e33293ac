// Foresight: under `graphlane run` a volume that nobody foresaw is mounted before the program gets a descriptor of
// it, or becomes a program that the library is not in, which would read stubs.
//
//   where the command has a mount namespace   the process beside `graphlane run` mounts it (iomgr/mount_request.h)
//   where it has none                         the library serves its own program without a mount, and the other one
//                                             is started by `graphlane run` again
//
// Threads: everything is safe from any. A child by vfork only looks at programs. Keeps errno.
#pragma once

namespace graphlane {

// Of open(2)'s arguments, before it is called.
void foresee(int directory, const char* path, int flags);

// How execve(2) is to be called; see foresee_program().
struct ProgramCall {
  const char* path;
  char* const* words;
  char* const* environment;
};

// Whether the library would not get into the program: static, Go, set-user-ID, musl's. What is none is not.
bool is_blind(const char* path);

// Whether a word names what lies in a volume that is not mounted.
bool names_unmounted(char* const* words);

// A striped file is open without a mount, which nobody asked for (`--no-mount`): from now on what the library does not
// see is refused to the program. 0, or an errno: the program has begun with that already.
int serve_alone();

// Of a blind one. In a namespace: what it is about is mounted when this returns. False: there is no namespace, and
// it should be started by `graphlane run` (run_again()).
bool foresee_program(const ProgramCall& call);

// The words of that: kRunAgainWords in front of the program's, and a null behind.
inline constexpr int kRunAgainWords = 8;
const char* run_again(const ProgramCall& call, const char** words);

}  // namespace graphlane
