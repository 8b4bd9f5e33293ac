#include "cli/elf_file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "iomgr/base/fd.h"
#include "iomgr/base/file_io.h"

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

// The dynamic section: what it needs, where from, and whether it is a program
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

// The directories of the loader itself: LD_LIBRARY_PATH and the system's.
std::vector<std::string> system_path() {
  std::vector<std::string> directories;
  void* self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size;
  if (self != nullptr && ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    const auto storage = std::make_unique<std::max_align_t[]>(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = reinterpret_cast<Dl_serinfo*>(storage.get());
    ::dlinfo(self, RTLD_DI_SERINFOSIZE, info);
    if (::dlinfo(self, RTLD_DI_SERINFO, info) == 0) {
      for (unsigned i = 0; i < info->dls_cnt; ++i) directories.emplace_back(info->dls_serpath[i].dls_name);
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
