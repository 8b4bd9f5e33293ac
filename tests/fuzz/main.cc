// The driver: replays a corpus, then mutates it for a while.
//
//   fuzz --list
//   fuzz TARGET SECONDS SEED CORPUS CRASHES     files of the folder CORPUS
//
// An input that crashes, or takes ten seconds, is written into the folder CRASHES, and the process
// ends by its signal.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
namespace {

using Input = std::vector<uint8_t>;

constexpr size_t kInputMax = 64 << 10;
constexpr unsigned kSecondsMax = 10;  // of one input

Input current;
std::string crash_file;

void keep_current(int signal) {
  const int file = ::open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  (void)!::write(file, current.data(), current.size());
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const FuzzTarget& target, Input input) {
  current = std::move(input);
  ::alarm(kSecondsMax);
  // Its own copy, of exactly that size: the address sanitizer finds a read beyond it.
  const Input copy(current.begin(), current.end());
  target.run(copy);
}

class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  Input next() {
    Input input = corpus_.empty() ? Input() : corpus_[below(corpus_.size())];
    for (size_t i = 1 + below(4); i > 0; --i) mutate(input);
    if (input.size() > kInputMax) input.resize(kInputMax);
    return input;
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  void mutate(Input& input) {
    static constexpr uint64_t kWords[] = {0,
                                          1,
                                          0x7f,
                                          0x80,
                                          0xff,
                                          0x7fff,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          ~uint64_t{0}};
    static constexpr char kBytes[] = " \t\n,;:\"{}[]0123456789-+.eE#%/\\\0";
    const size_t at = below(input.size() + 1);
    switch (below(7)) {
      case 0:
        if (at < input.size()) input[at] ^= static_cast<uint8_t>(1u << below(8));
        break;
      case 1:
        input.insert(input.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(below(256)));
        break;
      case 2:
        input.insert(input.begin() + static_cast<ptrdiff_t>(at),
                     static_cast<uint8_t>(kBytes[below(sizeof kBytes)]));
        break;
      case 3:
        input.erase(input.begin() + static_cast<ptrdiff_t>(at),
                    input.begin() + static_cast<ptrdiff_t>(at + below(input.size() - at + 1)));
        break;
      case 4: {
        const uint64_t word = kWords[below(std::size(kWords))];
        const size_t width = size_t{1} << below(4);
        for (size_t i = 0; i < width && at + i < input.size(); ++i) {
          input[at + i] = static_cast<uint8_t>(word >> 8 * i);
        }
        break;
      }
      case 5: {  // a piece of itself once more
        const size_t length = below(std::min<size_t>(input.size() - at, 4096) + 1);
        const Input piece(input.begin() + static_cast<ptrdiff_t>(at),
                          input.begin() + static_cast<ptrdiff_t>(at + length));
        input.insert(input.begin() + static_cast<ptrdiff_t>(below(input.size() + 1)), piece.begin(),
                     piece.end());
        break;
      }
      default: {  // the end of another
        if (corpus_.empty()) break;
        const Input& other = corpus_[below(corpus_.size())];
        const size_t from = below(other.size() + 1);
        input.resize(at);
        input.insert(input.end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
      }
    }
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 random_;
};

int run_all(const FuzzTarget& target, double seconds, uint64_t seed, const char* folder) {
  std::vector<Input> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::sort(corpus.begin(), corpus.end());  // the same seed gives the same inputs
  uint64_t count = 0;
  for (const Input& input : corpus) run(target, input), ++count;
  Mutator mutator(corpus, seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) run(target, mutator.next()), ++count;
  std::printf("%llu inputs\n", static_cast<unsigned long long>(count));
  return 0;
}

}  // namespace
}  // namespace graphlane::fuzz

int main(int argc, char** argv) {
  using namespace graphlane::fuzz;
  if (argc == 2 && std::string_view(argv[1]) == "--list") {
    for (const auto targets : all_targets()) {
      for (const FuzzTarget& target : targets) {
        std::printf("%s\n", std::string(target.name).c_str());
      }
    }
    return 0;
  }
  const FuzzTarget* const target = argc == 6 ? find_target(argv[1]) : nullptr;
  if (target == nullptr) {
    return std::fprintf(stderr, "usage: fuzz TARGET SECONDS SEED CORPUS CRASHES\n"), 2;
  }
  crash_file = std::string(argv[5]) + "/crash-" + argv[1];
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGALRM}) {
    ::signal(signal, keep_current);
  }
  return run_all(*target, std::atof(argv[2]), std::strtoull(argv[3], nullptr, 10), argv[4]);
}
