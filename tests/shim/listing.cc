// listing DIR: prints a line for every call that shows sizes or types in the tree DIR. It knows
// nothing of Graphlane: its output for a plain tree and for the striped twin must be the same.
#include <dirent.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace {

std::set<std::string> lines;

void say(const std::string& call, const std::string& name, long long size,
         const std::string& kind) {
  lines.insert(call + " " + name + " " + std::to_string(size) + " " + kind);
}

std::string last_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

std::string kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "file";
}

// A directory's size depends on the filesystem alone.
void say_stat(const std::string& call, const std::string& name, const struct stat& st) {
  say(call, name, S_ISDIR(st.st_mode) ? 0 : st.st_size, kind_of(st.st_mode));
}

// A walk inside the callback of another walk.
int count_entries(const char*, const struct stat* st, int kind) {
  if (kind == FTW_F) say_stat("ftw within nftw", "", *st);
  return 0;
}

bool nested = false;
std::string nftw_name;

int visit_nftw(const char* path, const struct stat* st, int kind, FTW* place) {
  if (kind == FTW_NS || kind == FTW_DNR) std::abort();
  if (place->level > 0) say_stat(nftw_name, last_name(path), *st);
  if (nested && kind == FTW_D && place->level > 0) ftw(path, count_entries, 8);
  return 0;
}

int visit_ftw(const char* path, const struct stat* st, int) {
  say_stat("ftw", last_name(path), *st);
  return 0;
}

void walk(const char* directory) {
  ftw(directory, visit_ftw, 8);
  const struct {
    const char* name;
    int flags;
  } kinds[] = {{"nftw", 0},
               {"nftw physical", FTW_PHYS},
               {"nftw chdir", FTW_CHDIR},
               {"nftw depth chdir", FTW_DEPTH | FTW_CHDIR}};
  for (const auto& kind : kinds) {
    nftw_name = kind.name;
    nftw(directory, visit_nftw, 8, kind.flags);
  }
  nftw_name = "nftw around ftw";
  nested = true;
  nftw(directory, visit_nftw, 8, 0);
}

void walk_fts(const char* directory, const std::string& name, int options) {
  char* const roots[] = {const_cast<char*>(directory), nullptr};
  FTS* fts = fts_open(roots, options, nullptr);
  if (fts == nullptr) std::abort();
  while (FTSENT* entry = fts_read(fts)) {
    if (entry->fts_info == FTS_DP) continue;
    if (entry->fts_level > 0) say_stat("fts_read" + name, entry->fts_name, *entry->fts_statp);
    if (entry->fts_info != FTS_D) continue;
    for (FTSENT* child = fts_children(fts, 0); child != nullptr; child = child->fts_link) {
      say_stat("fts_children" + name, child->fts_name, *child->fts_statp);
    }
  }
  fts_close(fts);
}

void list_names(const char* directory) {
  glob_t found;
  if (glob((std::string(directory) + "/*").c_str(), GLOB_MARK, nullptr, &found) != 0) std::abort();
  for (size_t i = 0; i < found.gl_pathc; ++i) {
    const std::string path = found.gl_pathv[i];
    say("glob", path.substr(std::strlen(directory)), 0, "");
  }
  globfree(&found);
  dirent** entries = nullptr;
  const int count = scandir(directory, &entries, nullptr, alphasort);
  for (int i = 0; i < count; ++i) {
    const dirent& entry = *entries[i];
    if (entry.d_name[0] == '.') continue;
    struct stat st;
    lstat((std::string(directory) + "/" + entry.d_name).c_str(), &st);
    // A filesystem may leave the type unknown, but it may not be wrong.
    const bool said = entry.d_type == DT_UNKNOWN || IFTODT(st.st_mode) == entry.d_type;
    say_stat("lstat", entry.d_name, st);
    say("scandir", entry.d_name, 0, said ? "" : "of another type");
    free(entries[i]);
  }
  free(entries);
}

void list_sizes(const char* directory, const char* name) {
  const std::string path = std::string(directory) + "/" + name;
  struct stat st;
  if (stat(path.c_str(), &st) == 0) say_stat("stat", name, st);
  if (lstat(path.c_str(), &st) == 0) say_stat("lstat", name, st);
  const int fd = open(path.c_str(), O_RDONLY);
  if (fstat(fd, &st) == 0) say_stat("fstat", name, st);
  if (fstatat(fd, "", &st, AT_EMPTY_PATH) == 0) say_stat("fstatat of a descriptor", name, st);
  say("lseek", name, lseek(fd, 0, SEEK_END), "");
  close(fd);
  const int at = open(directory, O_RDONLY | O_DIRECTORY);
  if (fstatat(at, name, &st, 0) == 0) say_stat("fstatat", name, st);
  if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0) say_stat("fstatat of the name", name, st);
  struct statx stx;
  if (statx(at, name, 0, STATX_SIZE, &stx) == 0) {
    say("statx", name, static_cast<long long>(stx.stx_size), "");
  }
  close(at);
  FILE* file = fopen(path.c_str(), "r");
  fseek(file, 0, SEEK_END);
  say("ftell at the end", name, ftell(file), "");
  fclose(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: listing DIR\n");
    return 2;
  }
  const char* directory = argv[1];
  walk(directory);
  walk_fts(directory, "", FTS_PHYSICAL);
  walk_fts(directory, " without chdir", FTS_PHYSICAL | FTS_NOCHDIR);
  walk_fts(directory, " logical", FTS_LOGICAL);
  list_names(directory);
  list_names((std::string(directory) + "/below").c_str());
  for (const char* name : {"striped", "small", "page", "link", "below/striped"}) {
    list_sizes(directory, name);
  }
  for (const std::string& line : lines) std::puts(line.c_str());
  return 0;
}
