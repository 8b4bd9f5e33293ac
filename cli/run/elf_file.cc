#include "cli/run/elf_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

struct ElfEnd {
  void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfHandle = std::unique_ptr<Elf, ElfEnd>;

void replace_all(std::string* text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text->find(from, at)) != std::string::npos; at += to.size()) {
    text->replace(at, from.size(), to);
  }
}

std::vector<std::string> split_path(const std::string& list) {
  std::vector<std::string> directories;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ':');) {
    if (!word.empty()) directories.push_back(word);
  }
  return directories;
}

void read_interpreter(Elf* elf, ElfFile* file) {
  size_t count = 0;
  if (elf_getphdrnum(elf, &count) != 0) return;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf, static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_type != PT_INTERP) continue;
    const Elf_Data* text = elf_getdata_rawchunk(elf, static_cast<int64_t>(header.p_offset),
                                                header.p_filesz, ELF_T_BYTE);
    if (text == nullptr || text->d_buf == nullptr) continue;
    const auto* begin = static_cast<const char*>(text->d_buf);
    file->interpreter.assign(begin, strnlen(begin, text->d_size));
  }
}

// Reads the dynamic section: needed libraries, search path, and whether the file is a program
// without a loader (static-pie) or a library.
void read_dynamic(Elf* elf, Elf_Data* data, const GElf_Shdr& section, ElfFile* file) {
  bool is_program = false;
  const size_t count = section.sh_entsize > 0 ? section.sh_size / section.sh_entsize : 0;
  for (size_t i = 0; i < count; ++i) {
    GElf_Dyn entry;
    if (gelf_getdyn(data, static_cast<int>(i), &entry) == nullptr) break;
    if (entry.d_tag == DT_FLAGS_1) is_program = (entry.d_un.d_val & DF_1_PIE) != 0;
    if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_RUNPATH && entry.d_tag != DT_RPATH) continue;
    const char* text = elf_strptr(elf, section.sh_link, entry.d_un.d_val);
    if (text == nullptr) continue;
    if (entry.d_tag == DT_NEEDED) {
      file->needed.emplace_back(text);
    } else {
      std::string path = text;
      const std::string origin = fs::path(file->path).parent_path().string();
      replace_all(&path, "$ORIGIN", origin);
      replace_all(&path, "${ORIGIN}", origin);
      file->search_path = split_path(path);
    }
  }
  file->is_library = file->interpreter.empty() && !is_program;
}

void read_imports(Elf* elf, Elf_Data* data, const GElf_Shdr& section, ElfFile* file) {
  const size_t count = section.sh_entsize > 0 ? section.sh_size / section.sh_entsize : 0;
  for (size_t i = 1; i < count; ++i) {
    GElf_Sym symbol;
    if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
    const char* name = elf_strptr(elf, section.sh_link, symbol.st_name);
    if (symbol.st_shndx == SHN_UNDEF && name != nullptr) file->imports.emplace(name);
  }
}

void read_sections(Elf* elf, ElfFile* file) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0) return;
  Elf_Scn* scan = nullptr;
  while ((scan = elf_nextscn(elf, scan)) != nullptr) {
    GElf_Shdr section;
    if (gelf_getshdr(scan, &section) == nullptr) continue;
    const char* name = elf_strptr(elf, names, section.sh_name);
    if (name != nullptr && std::strcmp(name, ".go.buildinfo") == 0) file->is_go = true;
    if (section.sh_type != SHT_DYNAMIC && section.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(scan, nullptr);
    if (data == nullptr) continue;
    if (section.sh_type == SHT_DYNAMIC) {
      read_dynamic(elf, data, section, file);
    } else {
      read_imports(elf, data, section, file);
    }
  }
}

GElf_Half this_machine() {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__)
  return EM_AARCH64;
#elif defined(__riscv)
  return EM_RISCV;
#else
  return EM_NONE;
#endif
}

// Whether a string is exactly the name of a shared library: "libz.so.1".
bool is_library_name(std::string_view text) {
  const size_t at = text.find(".so");
  if (at == std::string_view::npos || at == 0) return false;
  const auto is_of_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("_+-./", c) != nullptr;
  };
  const std::string_view version = text.substr(at + 3);
  return std::all_of(text.begin(), text.end(), is_of_name) && text[at - 1] != '/' &&
         (version.empty() || (version[0] == '.' &&
                              version.find_first_not_of(".0123456789") == std::string_view::npos));
}

void find_library_names(std::string_view bytes, std::set<std::string>* names) {
  constexpr size_t kNameMax = 255;
  for (size_t at = bytes.find(".so"); at != std::string_view::npos;
       at = bytes.find(".so", at + 3)) {
    const size_t before = at == 0 ? std::string_view::npos : bytes.rfind('\0', at);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const size_t end = bytes.find('\0', at);
    if (end == std::string_view::npos || end - begin > kNameMax) continue;
    const std::string_view text = bytes.substr(begin, end - begin);
    if (is_library_name(text)) names->emplace(text);
  }
}

// Looks for "mov $425,%eax", or the two numbers after it, and soon "syscall": liburing's functions
// are inline.
bool has_io_uring_calls(std::string_view code) {
  constexpr std::string_view kSyscall("\x0f\x05", 2), kRest("\x01\0\0", 3);
  constexpr size_t kNear = 40;
  for (size_t at = code.find(kSyscall); at != std::string_view::npos;
       at = code.find(kSyscall, at + 2)) {
    const size_t begin = at < kNear ? 0 : at - kNear;
    for (size_t move = begin; move + 5 <= at; ++move) {
      const auto low = static_cast<unsigned char>(code[move + 1]);
      if (code[move] == '\xb8' && low >= 0xa9 && low <= 0xab && code.substr(move + 2, 3) == kRest) {
        return true;
      }
    }
  }
  return false;
}

// The loader's directories: LD_LIBRARY_PATH and the system's.
std::vector<std::string> system_path() {
  std::vector<std::string> directories;
  void* self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size;
  if (self != nullptr && ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    const auto storage =
        std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = reinterpret_cast<Dl_serinfo*>(storage.get());
    ::dlinfo(self, RTLD_DI_SERINFOSIZE, info);
    if (::dlinfo(self, RTLD_DI_SERINFO, info) == 0) {
      for (unsigned i = 0; i < info->dls_cnt; ++i) {
        directories.emplace_back(info->dls_serpath[i].dls_name);
      }
    }
  }
  if (self != nullptr) ::dlclose(self);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/etc/ld.so.conf.d", error)) {
    std::ifstream lines(entry.path());
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with('/')) directories.push_back(line);
    }
  }
  return directories;
}

}  // namespace

Outcome<bool> is_elf(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return os_error(errno, path, "cannot open");
  char magic[SELFMAG] = {};
  const Result<size_t> got = pread_full(fd.get(), magic, sizeof magic, 0);
  if (!got) return os_error(got.error().code, path, "cannot read");
  return std::memcmp(magic, ELFMAG, SELFMAG) == 0;
}

Outcome<ElfFile> read_elf(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return os_error(errno, path, "cannot open");
  elf_version(EV_CURRENT);
  const ElfHandle elf(elf_begin(fd.get(), ELF_C_READ, nullptr));
  GElf_Ehdr header;
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF ||
      gelf_getehdr(elf.get(), &header) == nullptr) {
    return make_error(EINVAL, "{}: a damaged ELF file", path);
  }
  if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
    return make_error(EINVAL, "{}: an ELF file, but neither a program nor a library", path);
  }
  ElfFile file;
  file.path = path;
  file.for_this_machine =
      header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == this_machine();
  read_interpreter(elf.get(), &file);
  read_sections(elf.get(), &file);
  return file;
}

ElfContent look_into_elf(const std::string& path) {
  ElfContent content;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  elf_version(EV_CURRENT);
  const ElfHandle elf(fd ? elf_begin(fd.get(), ELF_C_READ_MMAP, nullptr) : nullptr);
  if (elf == nullptr || elf_kind(elf.get()) != ELF_K_ELF) return content;
  Elf_Scn* scan = nullptr;
  while ((scan = elf_nextscn(elf.get(), scan)) != nullptr) {
    GElf_Shdr section;
    if (gelf_getshdr(scan, &section) == nullptr || section.sh_type != SHT_PROGBITS ||
        (section.sh_flags & SHF_ALLOC) == 0) {
      continue;
    }
    const Elf_Data* const data = elf_rawdata(scan, nullptr);
    if (data == nullptr || data->d_buf == nullptr) continue;
    const std::string_view bytes(static_cast<const char*>(data->d_buf), data->d_size);
    if ((section.sh_flags & SHF_EXECINSTR) == 0) {
      find_library_names(bytes, &content.libraries);
    } else if (this_machine() == EM_X86_64) {
      content.calls_io_uring = content.calls_io_uring || has_io_uring_calls(bytes);
    }
  }
  return content;
}

std::string find_library(const ElfFile& file, const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  static const std::vector<std::string> system = system_path();
  std::error_code error;
  for (const auto* path : {&file.search_path, &system}) {
    for (const std::string& directory : *path) {
      const fs::path candidate = fs::path(directory) / name;
      if (fs::is_regular_file(candidate, error)) return candidate.string();
    }
  }
  return {};
}

}  // namespace graphlane::cli
