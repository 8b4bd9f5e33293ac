// Error: a failure, in one line that a person can act on.
//
// The text names the culprit and the reason ("/mnt/d2: holds device 1 of the volume, expected
// device 2"). The program that prints it puts its own name in front. `code` is the errno that a
// caller such as FUSE passes on.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include "iomgr/base/result.h"

namespace graphlane {

struct Error {
  int code = 0;  // errno, positive
  std::string text;
};

// Outcome<T>: a Result with a reason for a person to read.
template <class T>
using Outcome = Result<T, Error>;

// make_error(EINVAL, "{}: not a multiple of 4096", path)
template <class... Args>
Error make_error(int code, fmt::format_string<Args...> format, Args&&... args) {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

// "PATH: ACTION: strerror(code)", for a failed system call.
Error os_error(int code, std::string_view path, std::string_view action);

}  // namespace graphlane
