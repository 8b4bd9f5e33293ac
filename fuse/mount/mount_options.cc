// Parses the list behind -o.
#include <algorithm>
#include <array>

#include "fuse/mount/kernel_flags.h"
#include "fuse/mount/mount.h"
#include "iomgr/base/size.h"

namespace graphlane::fuse {
namespace {

using Applied = Outcome<void>;

// Options for mount(8), fstab and systemd themselves, which they pass to every filesystem.
bool is_for_others(std::string_view name) {
  static constexpr std::array<std::string_view, 11> kNames = {"defaults",
                                                              "auto",
                                                              "noauto",
                                                              "user",
                                                              "nouser",
                                                              "users",
                                                              "owner",
                                                              "group",
                                                              "_netdev",
                                                              "nofail",
                                                              "default_permissions"};
  return name.starts_with("x-") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Options that the kernel lists for a mount, so that mount(8) passes them to a remount.
bool is_shown_by_kernel(std::string_view name) {
  return name == "user_id" || name == "group_id" || name == "blksize";
}

Applied set_size(std::string_view name, std::string_view value, uint64_t* bytes) {
  const Outcome<uint64_t> size = parse_size(value);
  if (!size || *size < 4096) return bad_value(name, value, "a size of at least 4K");
  *bytes = *size;
  return {};
}

Applied set_io_mode(std::string_view value, IoMode* mode) {
  if (value == "auto") {
    *mode = IoMode::kAuto;
  } else if (value == "direct") {
    *mode = IoMode::kDirect;
  } else if (value == "buffered") {
    *mode = IoMode::kBuffered;
  } else {
    return bad_value("io", value, "auto, direct or buffered");
  }
  return {};
}

Applied set_cache_policy(std::string_view value, CachePolicy* policy) {
  const Result<CachePolicy> known = parse_cache_policy(value);
  if (!known) return bad_value("cache_policy", value, "scan-resistant, lru, fifo or hot-aware");
  *policy = *known;
  return {};
}

void set_kernel_flag(MountOptions& options, std::string_view name) {
  if (name == "ro" || name == "rw") options.read_only = name == "ro";
  if (name == "noatime") options.no_access_times = true;
  if (name == "atime" || name == "relatime") options.no_access_times = false;
  options.kernel_flags.emplace_back(name);
}

Applied apply(MountOptions& options, std::string_view option) {
  const size_t equals = option.find('=');
  const std::string_view name = option.substr(0, equals);
  if (equals == std::string_view::npos) {
    if (name == "allow_other") return options.allow_other = true, Applied{};
    if (name == "remount") return options.remount = true, Applied{};
    if (find_kernel_flag(name) != nullptr) return set_kernel_flag(options, name), Applied{};
    if (is_for_others(name)) return {};
    return make_error(EINVAL, "unknown mount option \"{}\"", option);
  }
  const std::string_view value = option.substr(equals + 1);
  if (const Outcome<bool> taken = options.take(name, value); !taken) {
    return taken.error();
  } else if (*taken) {
    return {};
  }
  if (name == "threads") return set_count(name, value, 256, &options.thread_count);
  if (name == "io") return set_io_mode(value, &options.io_mode);
  if (name == "cache_policy") return set_cache_policy(value, &options.cache.policy);
  if (name == "max_read") return set_size(name, value, &options.max_read_bytes);
  if (name == "entry_timeout") return set_seconds(name, value, &options.entry_timeout_seconds);
  if (name == "attr_timeout") return set_seconds(name, value, &options.attr_timeout_seconds);
  if (name == "negative_timeout") {
    return set_seconds(name, value, &options.negative_timeout_seconds);
  }
  if (is_for_others(name) || is_shown_by_kernel(name)) return {};  // x-systemd.…=
  return make_error(EINVAL, "unknown mount option \"{}\"", option);
}

}  // namespace

Outcome<void> MountOptions::parse(std::string_view list) {
  return for_each_option(list, [this](std::string_view option) { return apply(*this, option); });
}

}  // namespace graphlane::fuse
