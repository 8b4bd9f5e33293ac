// FileServer: one question that cannot be answered is no other client's trouble.
#include "iomgr/file_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstring>
#include <new>

#include "iomgr/base/uuid.h"
#include "iomgr/server_socket.h"

namespace graphlane {
namespace {

// Has no memory for the first question.
class ShortOfMemory final : public FileServer::Host {
 public:
  bool serves(dev_t) const override { return true; }
  FileServer::Answer answer(const FileServer::Question&) override {
    if (++asked_count_ == 1) throw std::bad_alloc();
    return {};
  }

 private:
  int asked_count_ = 0;
};

TEST(FileServerTest, WithoutMemoryItRefusesAndGoesOn) {
  const std::string name = "graphlane-" + std::string(UuidText(Uuid::random()).view());
  const ServerAddress address = ServerAddress::of_mount(name.c_str());
  ShortOfMemory host;
  const auto server = FileServer::start(address.listen(), host, nullptr);
  ASSERT_TRUE(server) << server.error().text;
  const Fd shown(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (const int expected : {ENOMEM, 0}) {
    const Fd connection = address.connect(kServerPatience);
    ASSERT_TRUE(connection && send_question(connection.get(), shown.get(), ServerRequest::kMagic));
    alignas(ServerReply) char buffer[sizeof(ServerReply)];
    ServerMessage received;
    receive_message(connection.get(), buffer, sizeof buffer, &received);
    const ServerReply* const reply = reply_in(received, buffer);
    ASSERT_NE(reply, nullptr);
    EXPECT_EQ(reply->error, expected);
  }
}

}  // namespace
}  // namespace graphlane
