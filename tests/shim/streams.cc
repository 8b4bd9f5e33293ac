// streams FILE OTHER: prints the result of each function of stdio on a text, a line each. It knows
// nothing of Graphlane: its output for a plain file and for the striped twin must be the same.
// OTHER is a plain file. Standard input is FILE too.
#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

const char* path = nullptr;
const char* other_path = nullptr;

uint64_t digest(const void* data, size_t length) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (size_t i = 0; i < length; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

void say(const char* what, long long result, uint64_t hash = 0) {
  std::printf("%s: %lld %016llx\n", what, result, static_cast<unsigned long long>(hash));
}

// A stream over the file, with some bytes buffered already.
void with(const char* what, const std::function<void(FILE*)>& use, const char* mode = "r") {
  FILE* file = fopen(path, mode);
  if (file == nullptr) {
    say(what, -errno);
    return;
  }
  use(file);
  std::printf("%s: at %lld, end %d, error %d\n", what, static_cast<long long>(ftello(file)),
              feof(file), ferror(file));
  say("fclose", fclose(file));
}

int scan(FILE* file, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = vfscanf(file, format, arguments);
  va_end(arguments);
  return count;
}

int scan_wide(FILE* file, const wchar_t* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = vfwscanf(file, format, arguments);
  va_end(arguments);
  return count;
}

std::vector<char> buffer(3'000'000);
bool wide = true;

void read_bytes() {
  with("fread", [](FILE* file) {
    size_t n = 0;
    for (const size_t piece : {1, 4095, 1'000'000, 5, 3'000'000}) {
      n = fread(buffer.data(), 1, piece, file);
      say("piece", static_cast<long long>(n), digest(buffer.data(), n));
    }
  });
  with("fread of items", [](FILE* file) {
    const size_t n = fread(buffer.data(), 7, 300'000, file);
    say("items", static_cast<long long>(n), digest(buffer.data(), n * 7));
  });
  with("fread_unlocked", [](FILE* file) {
    const size_t n = fread_unlocked(buffer.data(), 1, 70'001, file);
    say("bytes", static_cast<long long>(n), digest(buffer.data(), n));
  });
  const struct {
    const char* name;
    int (*get)(FILE*);
  } gets[] = {{"fgetc", fgetc},
              {"getc", [](FILE* f) { return getc(f); }},
              {"getw", getw},
              {"fgetc_unlocked", fgetc_unlocked},
              {"getc_unlocked", [](FILE* f) { return getc_unlocked(f); }}};
  for (const auto& one : gets) {
    with(one.name, [&](FILE* file) {
      uint64_t sum = 0;
      for (int i = 0; i < 100'000; ++i) sum = sum * 31 + static_cast<unsigned>(one.get(file));
      say("sum", 0, sum);
    });
  }
  with("ungetc", [](FILE* file) {
    say("at the start", ungetc('z', file));
    say("get", getc(file));
    fseek(file, 70'000, SEEK_SET);
    for (const char c : {'a', 'b', 'c'}) ungetc(c, file);
    say("tell", ftell(file));
    const size_t n = fread(buffer.data(), 1, 100, file);
    say("bytes", static_cast<long long>(n), digest(buffer.data(), n));
    ungetc('q', file);
    rewind(file);
    say("get", getc(file));
  });
}

void read_lines() {
  with("fgets", [](FILE* file) {
    uint64_t hash = 0;
    int count = 0;
    while (fgets(buffer.data(), 50, file) != nullptr) {
      hash = hash * 31 + digest(buffer.data(), strlen(buffer.data()));
      ++count;
    }
    say("lines", count, hash);
  });
  with("fgets_unlocked", [](FILE* file) {
    say("line", fgets_unlocked(buffer.data(), 5000, file) != nullptr,
        digest(buffer.data(), strlen(buffer.data())));
  });
  char* line = nullptr;
  size_t room = 0;
  with("getline", [&](FILE* file) {
    uint64_t hash = 0;
    ssize_t n = 0;
    while ((n = getline(&line, &room, file)) > 0) {
      hash = hash * 31 + digest(line, static_cast<size_t>(n));
    }
    say("lines", n, hash);
  });
  with("getdelim", [&](FILE* file) {
    const ssize_t n = getdelim(&line, &room, '7', file);
    say("bytes", n, digest(line, static_cast<size_t>(n)));
  });
  free(line);
  with("fscanf", [](FILE* file) {
    int a = 0;
    char word[100] = "";
    for (int i = 0; i < 20'000; ++i) {
      if (fscanf(file, "%d %99s", &a, word) != 2) break;
    }
    say(word, a);
    say("vfscanf", scan(file, "%d", &a));
  });
}

void read_wide() {
  // One line where a stream cannot have wide characters.
  with("wide", [](FILE* file) {
    if (fwide(file, 1) > 0) return;
    errno = 0;
    wchar_t room[10];
    const bool refused = getwc(file) == WEOF && errno == ENOTSUP &&
                         fgetws(room, 10, file) == nullptr && fwscanf(file, L"%d", room) == EOF &&
                         ungetwc(L'x', file) == WEOF && ferror(file);
    std::printf("without wide characters: %s\n",
                refused && getc(file) != EOF ? "said so" : "broken");
    wide = false;
  });
  if (!wide) return;
  say("locale", setlocale(LC_ALL, "C.UTF-8") != nullptr);
  std::vector<wchar_t> room(1000);
  with("fgetws", [&](FILE* file) {
    say("fwide", fwide(file, 1) > 0);
    uint64_t hash = 0;
    while (fgetws(room.data(), 60, file) != nullptr) {
      hash = hash * 31 + digest(room.data(), wcslen(room.data()) * sizeof(wchar_t));
    }
    say("lines", 0, hash);
  });
  with("fgetwc", [](FILE* file) {
    uint64_t sum = 0;
    for (int i = 0; i < 90'000; ++i) sum = sum * 31 + (i % 2 == 0 ? fgetwc(file) : getwc(file));
    ungetwc(L'\u20ac', file);
    say("sum", fgetwc(file), sum);
    fseek(file, 0, SEEK_SET);
    say("first", fgetwc_unlocked(file));
  });
  with("fwscanf", [&](FILE* file) {
    int a = 0;
    say("count", fwscanf(file, L"%d %99ls", &a, room.data()),
        digest(room.data(), wcslen(room.data()) * sizeof(wchar_t)));
    say("vfwscanf", scan_wide(file, L"%d", &a));
  });
  setlocale(LC_ALL, "C");
}

void seek() {
  with("fseek", [](FILE* file) {
    say("set", fseek(file, 123'456, SEEK_SET), static_cast<uint64_t>(getc(file)));
    say("current", fseek(file, 1'000'000, SEEK_CUR), static_cast<uint64_t>(getc(file)));
    say("back", fseek(file, -10, SEEK_CUR), static_cast<uint64_t>(getc(file)));
    say("end", fseeko(file, -1, SEEK_END), static_cast<uint64_t>(getc(file)));
    say("at the end", getc(file));
    say("beyond", fseeko(file, 1000, SEEK_END), static_cast<uint64_t>(ftello(file)));
    say("nothing there", getc(file));
    say("end of file", feof(file));
    const int failed = fseek(file, -1, SEEK_SET);
    say("before the start", failed, static_cast<uint64_t>(errno));
    clearerr(file);
    say("cleared", feof(file));
  });
  with("fsetpos", [](FILE* file) {
    fpos_t place;
    fseek(file, 555'555, SEEK_SET);
    fgetpos(file, &place);
    const int c = getc(file);
    rewind(file);
    say("again", fsetpos(file, &place), static_cast<uint64_t>(getc(file) == c));
  });
}

void buffers() {
  static char own[1 << 20];
  const struct {
    const char* name;
    std::function<void(FILE*)> set;
  } kinds[] = {{"unbuffered", [](FILE* f) { setvbuf(f, nullptr, _IONBF, 0); }},
               {"a buffer of its own", [](FILE* f) { setvbuf(f, own, _IOFBF, sizeof own); }},
               {"by lines", [](FILE* f) { setlinebuf(f); }},
               {"setbuf", [](FILE* f) { setbuf(f, own); }},
               {"setbuffer", [](FILE* f) { setbuffer(f, own, 777); }}};
  for (const auto& kind : kinds) {
    with(kind.name, [&](FILE* file) {
      kind.set(file);
      uint64_t sum = 0;
      for (int i = 0; i < 3000; ++i) sum = sum * 31 + static_cast<unsigned>(getc(file));
      say("sum", static_cast<long long>(fread(buffer.data(), 1, 1'000'001, file)),
          sum ^ digest(buffer.data(), 1'000'001));
    });
  }
  with("fflush gives back what was not read", [](FILE* file) {
    setvbuf(file, own, _IOFBF, 4096);  // the buffer decides how far it reads ahead
    for (int i = 0; i < 1000; ++i) getc(file);
    say("fflush", fflush(file), static_cast<uint64_t>(lseek(fileno(file), 0, SEEK_CUR)));
  });
  with("fpurge", [](FILE* file) {
    setvbuf(file, own, _IOFBF, 4096);
    getc(file);
    __fpurge(file);
    say("reading", __freading(file) != 0, static_cast<uint64_t>(__freadable(file) != 0));
    say("may write", __fwritable(file) != 0);
  });
  with("locked", [](FILE* file) {
    flockfile(file);
    say("again", ftrylockfile(file), static_cast<uint64_t>(getc_unlocked(file)));
    funlockfile(file);
    funlockfile(file);
  });
}

// A stream and its descriptor.
void mixed() {
  with("fileno", [](FILE* file) {
    struct stat st;
    say("size", fstat(fileno(file), &st) == 0 ? st.st_size : -1,
        static_cast<uint64_t>(fileno_unlocked(file) == fileno(file)));
    lseek(fileno(file), 200'000, SEEK_SET);
    say("get", getc(file));
    const ssize_t n = pread(fileno(file), buffer.data(), 5000, 5);
    say("pread", n, digest(buffer.data(), 5000));
  });
  for (const char* mode : {"r", "re", "rb", "r+"}) {
    const int fd = open(path, O_RDONLY);
    lseek(fd, 100'000, SEEK_SET);
    FILE* file = fdopen(fd, mode);
    if (file == nullptr) {
      say(mode, -errno);
      continue;
    }
    const size_t n = fread(buffer.data(), 1, 5000, file);
    say(mode, static_cast<long long>(n), digest(buffer.data(), n));
    say("fclose", fclose(file));
    say("closed", lseek(fd, 0, SEEK_CUR));
  }
  const int fd = open(path, O_RDONLY);
  const int twin = dup(fd);
  FILE* file = fdopen(fd, "r");
  setvbuf(file, buffer.data(), _IOFBF, 4096);
  for (int i = 0; i < 10; ++i) getc(file);
  say("fclose", fclose(file));
  say("the twin is where the stream was", lseek(twin, 0, SEEK_CUR));
  for (const char* mode : {"r", "rb", "re", "rm", "rx", "q"}) {
    with(
        mode,
        [](FILE* stream) {
          say("close-on-exec", fcntl(fileno(stream), F_GETFD));
          const size_t n = fread(buffer.data(), 1, 2'000'000, stream);
          say("bytes", static_cast<long long>(n), digest(buffer.data(), n));
        },
        mode);
  }
}

void reopened() {
  FILE* file = fopen(path, "r");
  getc(file);
  file = freopen(other_path, "r", file);
  say("freopen of a plain file", file != nullptr && fread(buffer.data(), 1, 100, file) == 100,
      digest(buffer.data(), 100));
  fclose(file);
}

void of_cxx() {
  std::ifstream file(path);
  std::string word;
  int number = 0;
  file >> number >> word;
  say(word.c_str(), number);
  file.seekg(-5000, std::ios::end);
  say("seekg", file.tellg());
  std::string rest((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  say("rest", static_cast<long long>(rest.size()), digest(rest.data(), rest.size()));
  std::filebuf large;
  std::vector<char> own(1 << 20);
  large.pubsetbuf(own.data(), static_cast<std::streamsize>(own.size()));
  large.open(path, std::ios::in | std::ios::binary);
  const std::streamsize n = large.sgetn(buffer.data(), 2'000'000);
  say("sgetn", n, digest(buffer.data(), static_cast<size_t>(n)));
}

void of_stdin() {
  say("getchar", getchar(), static_cast<uint64_t>(getchar_unlocked()));
  int number = 0;
  say("scanf", scanf("%d", &number), static_cast<uint64_t>(number));
  const size_t n = fread(buffer.data(), 1, 2'500'000, stdin);
  say("fread", static_cast<long long>(n), digest(buffer.data(), n));
  say("tell", ftell(stdin));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: streams FILE OTHER < FILE\n");
    return 2;
  }
  path = argv[1];
  other_path = argv[2];
  const struct {
    const char* name;
    void (*run)();
  } parts[] = {{"bytes", read_bytes},  {"lines", read_lines}, {"wide", read_wide},
               {"seek", seek},         {"buffers", buffers},  {"mixed", mixed},
               {"reopened", reopened}, {"C++", of_cxx},       {"stdin", of_stdin}};
  for (const auto& part : parts) {
    std::printf("-- %s\n", part.name);
    part.run();
  }
  return 0;
}
