// Messages of jobs to a coordinator in this process: a good or bad attachment, and later messages.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "adapters/share/coordinator/coordinator.h"
#include "adapters/share/memory/sealed_memory.h"
#include "adapters/share/wire/layout.h"
#include "adapters/share/wire/protocol.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
namespace kit {  // of its own: other targets have a Layout, too

using namespace graphlane::share;

Fd seqpacket_socket() { return Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

class FuzzedCoordinator {
 public:
  FuzzedCoordinator() {
    Fd listener = seqpacket_socket();
    address_.sun_family = AF_UNIX;  // the kernel chooses an abstract name
    length_ = sizeof address_;
    require(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(sa_family_t)) ==
                0 &&
            ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address_), &length_) == 0 &&
            ::listen(listener.get(), 16) == 0);
    (void)::fcntl(listener.get(), F_SETFL, O_NONBLOCK);
    std::thread([held = std::move(listener)]() mutable {
      const CoordinatorOptions options{.budget_bytes = 16 << 20, .idle_ns = UINT64_MAX};
      (void)Coordinator(options).run(std::move(held), Fd());
      require(false);  // it never ends
    }).detach();
    Layout layout{.by_loader = false,
                  .partition_count = 2,
                  .record = {.size_bytes = 8},
                  .vertex_count = 100,
                  .ranges = {{.partition = 0, .file = 0, .offset = 0, .length_bytes = 800},
                             {.partition = 1, .file = 0, .offset = 800, .length_bytes = 80}}};
    const std::string bytes = layout.to_bytes();
    auto sealed = make_sealed({bytes.data(), bytes.size()});
    require(static_cast<bool>(sealed));
    layout_ = std::move(*sealed);
    file_ = Fd(::memfd_create("graph", MFD_CLOEXEC));
    directory_ = Fd(::open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    require(::ftruncate(file_.get(), 880) == 0);
  }

  // Sends the input, then an invalid message, for which it is disconnected: so the coordinator has
  // read the input.
  void talk(Bytes input) {
    const Fd job = seqpacket_socket();
    const timeval patience{.tv_sec = 8, .tv_usec = 0};
    (void)::setsockopt(job.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    require(::connect(job.get(), reinterpret_cast<sockaddr*>(&address_), length_) == 0);
    if (!input.empty() && (input[0] & 1) != 0) attach(job.get());
    if (!input.empty()) input = input.subspan(1);
    for (int said = 0; input.size() >= 2 && said < 16; ++said) {
      const size_t length = std::min<size_t>(input[1], input.size() - 2);
      say(job.get(), input[0], input.subspan(2, length));
      input = input.subspan(2 + length);
    }
    (void)share::send_message(job.get(), "x", {}, MSG_DONTWAIT);
    for (int i = 0; i < 1000; ++i) {
      const Result<Message> message = share::receive_message(job.get());
      if (!message) return require(message.error().code != EAGAIN);
    }
  }

 private:
  void attach(int job) const {
    const std::array<int, 3> fds = {layout_.get(), directory_.get(), file_.get()};
    (void)send_head(job, AttachMessage{}, "graph", fds, MSG_DONTWAIT);
  }

  // The low bits of `how` are a kind, or (15) the payload begins with one; the high ones
  // descriptors.
  void say(int job, uint8_t how, Bytes payload) const {
    static constexpr Kind kKinds[] = {Kind::kAttach, Kind::kSweep,         Kind::kNext,
                                      Kind::kLoaded, Kind::kTurn,          Kind::kDone,
                                      Kind::kUpdate, Kind::kAskStatistics, Kind::kWelcome};
    std::string message;
    if ((how & 15) < std::size(kKinds)) {
      message.assign(reinterpret_cast<const char*>(&kKinds[how & 15]), sizeof(Kind));
    }
    message.append(payload.begin(), payload.end());
    const std::array<int, 3> fds = {layout_.get(), directory_.get(), file_.get()};
    (void)share::send_message(job, message, {fds.data(), size_t{how} >> 4 & 3}, MSG_DONTWAIT);
  }

  sockaddr_un address_{};
  socklen_t length_ = 0;
  Fd layout_, file_, directory_;
};

void run_kit(Bytes input) {
  static FuzzedCoordinator coordinator;
  coordinator.talk(input);
}

constexpr FuzzTarget kTargets[] = {{"kit", run_kit}};

}  // namespace kit

std::span<const FuzzTarget> kit_targets() { return kit::kTargets; }

}  // namespace graphlane::fuzz
