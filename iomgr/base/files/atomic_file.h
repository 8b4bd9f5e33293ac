// Writes small files (volume.json, device.json, stubs) that are complete or absent: written under
// another name, synced, and renamed.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <string>
#include <string_view>

#include "iomgr/base/error.h"

namespace graphlane {

// Writes the file `name` below `directory_fd`, and syncs it and its directory. `path` is its name
// in messages. After an error nothing is left.
Outcome<void> write_file_atomically(int directory_fd, const std::string& name,
                                    std::string_view path, std::string_view content, mode_t mode);

// As above for an existing file; keeps its owner and mode.
Outcome<void> replace_file_atomically(int directory_fd, const std::string& name,
                                      const std::string& path, std::string_view content);

// The content of a file below `directory_fd`; `path` is its name in messages. EFBIG: larger than
// 512 KiB, which no valid file is.
Outcome<std::string> read_whole_file(int directory_fd, const char* name, std::string_view path);

// Makes the names in a directory durable.
Outcome<void> sync_directory(const std::string& path, int directory_fd = AT_FDCWD);

}  // namespace graphlane
