// graphlane-share-coordinator: the coordinator's program. Jobs start it (rendezvous.h). An
// administrator starts it for a graph that several users share, as root or as the graph's owner,
// because all users trust these.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "adapters/share/client/rendezvous.h"
#include "adapters/share/coordinator/coordinator.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/size.h"
#include "iomgr/cache/memory_budget.h"

namespace graphlane::share {
namespace {

constexpr char kUsage[] =
    "usage: graphlane-share-coordinator --serve=GRAPH [--budget=SIZE]\n"
    "  GRAPH is a GridGraph grid, or a graph's first file. Jobs of all users that may read it\n"
    "  share it while this program runs, if root or the graph's owner runs it.\n"
    "       graphlane-share-coordinator --listener | --connection [--budget=SIZE] [--idle-ms=N]\n"
    "  Jobs start it in this form, with a Unix socket as descriptor 3.\n";

constexpr int kSocket = 3;

bool take(std::string_view word, std::string_view name, std::string_view& value) {
  if (!word.starts_with(name)) return false;
  value = word.substr(name.size());
  return true;
}

bool is_unix_socket(int fd) {
  int domain = 0;
  socklen_t length = sizeof domain;
  return ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_UNIX;
}

int fail(std::string_view reason) {
  std::fprintf(stderr, "graphlane-share-coordinator: %.*s\n", static_cast<int>(reason.size()),
               reason.data());
  return 1;
}

// Serves in the foreground until it gets a signal.
int serve(std::string path, CoordinatorOptions options) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode)) path += "/column";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return fail(os_error(errno, path, "cannot open").text);
  const Result<FileIdentity> identity = identify(file.get());
  if (!identity) return fail(path + ": not a regular file");
  auto listener = listen_for_jobs(*identity);
  if (!listener && listener.error().code == EADDRINUSE) {
    return fail(path + ": has a coordinator of this user already");
  }
  if (!listener) return fail(listener.error().text);
  options.idle_ns = UINT64_MAX;
  const Outcome<void> served = Coordinator(options).run(std::move(*listener), Fd());
  return served ? 0 : fail(served.error().text);
}

int run(int argc, char** argv) {
  std::string_view how;
  std::string graph;
  CoordinatorOptions options;
  if (const char* budget = ::secure_getenv("GRAPHLANE_SHARE_BUDGET")) {
    const Outcome<uint64_t> size = parse_size(budget);
    if (!size) return fail("GRAPHLANE_SHARE_BUDGET: " + size.error().text);
    options.budget_bytes = *size;
    options.is_budget_given = true;
  } else {
    // The other half is for the jobs' own data.
    options.budget_bytes = budget_of(MemoryUse::kBuffers, memory_available_bytes());
  }
  if (const char* order = ::secure_getenv("GRAPHLANE_SHARE_ORDER")) {
    if (std::string_view(order) == "graph") {
      options.order = LoadOrder::kGraph;
    } else if (std::string_view(order) != "priority") {
      return fail("GRAPHLANE_SHARE_ORDER: '" + std::string(order) +
                  "': neither priority nor graph");
    }
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string_view value;
    if (word == "--listener" || word == "--connection") {
      how = word;
    } else if (take(word, "--serve=", value)) {
      graph = value;
    } else if (take(word, "--budget=", value)) {
      const Outcome<uint64_t> size = parse_size(value);
      if (!size) return fail(size.error().text);
      options.budget_bytes = *size;
      options.is_budget_given = true;
    } else if (take(word, "--idle-ms=", value)) {
      uint64_t number = 0;
      const auto [end, error] = std::from_chars(value.begin(), value.end(), number);
      if (error != std::errc() || end != value.end()) {
        return fail("--idle-ms: not a number of milliseconds");
      }
      options.idle_ns = number < UINT64_MAX / 1'000'000 / 2 ? number * 1'000'000 : UINT64_MAX;
    } else {
      std::fputs(kUsage, stderr);
      return 2;
    }
  }
  if (how.empty() == graph.empty()) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!graph.empty()) return serve(graph, options);
  if (!is_unix_socket(kSocket)) return fail("descriptor 3 is not a Unix socket");

  // Forks before any thread exists. The parent exits, on which the job that started it goes on.
  const pid_t child = ::fork();
  if (child < 0) return fail(std::strerror(errno));
  if (child > 0) ::_exit(0);
  ::setsid();
  if (::chdir("/") != 0) return fail(std::strerror(errno));
  ::umask(022);
  ::signal(SIGHUP, SIG_IGN);
  ::signal(SIGINT, SIG_IGN);
  ::prctl(PR_SET_NAME, "graphlane-share");

  Coordinator coordinator(options);
  const bool listens = how == "--listener";
  const Outcome<void> served =
      coordinator.run(listens ? Fd(kSocket) : Fd(), listens ? Fd() : Fd(kSocket));
  return served ? 0 : fail(served.error().text);
}

}  // namespace
}  // namespace graphlane::share

int main(int argc, char** argv) { return graphlane::share::run(argc, argv); }
