#include "experiments/costs/kv/stores.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "adapters/kv/kv_reader.h"
#include "graphfmt/pages/store_writer.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"

#ifdef GRAPHLANE_WITH_LMDB
#include <lmdb.h>
#endif
#ifdef GRAPHLANE_WITH_ROCKSDB
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/table.h>
#endif

namespace graphlane::replay {
namespace {

Error missing(uint64_t key) { return make_error(ENOENT, "the key {} is not there", key); }

// ---- ours

class PagesBuilder final : public StoreBuilder {
 public:
  Outcome<void> create(const std::string& dir) {
    auto writer = graphfmt::StoreWriter::create(dir + "/store.pages", {});
    if (!writer) return writer.error();
    writer_ = std::move(*writer);
    return {};
  }
  Outcome<void> put(uint64_t key, std::span<const uint8_t> value) override {
    return writer_->put(key, value);
  }
  Outcome<void> finish() override { return writer_->finish(); }

 private:
  std::unique_ptr<graphfmt::StoreWriter> writer_;
};

class PagesSession final : public StoreSession {
 public:
  explicit PagesSession(kv::KvStore& store) : reader_(store, {.frames = 256}) {}
  Outcome<void> gets(std::span<const uint64_t> keys, std::span<const float> hotness,
                     const Take& take) override {
    return reader_.multi_get(keys, hotness,
                             [&](size_t index, kv::PinnedValue value) -> Outcome<void> {
                               if (!value) return missing(keys[index]);
                               take(value.bytes());
                               return {};
                             });
  }

 private:
  kv::KvReader reader_;
};

class PagesStore final : public OpenStore {
 public:
  Outcome<void> open(const std::string& dir, uint64_t cache_bytes, unsigned threads) {
    auto store =
        kv::KvStore::open(dir + "/store.pages", {.cache = {.budget_bytes = cache_bytes,
                                                           .hotness = kv::HotnessKind::kLast,
                                                           .shards = threads > 1 ? 4 * threads : 1,
                                                           .per_byte = true}});
    if (!store) return store.error();
    store_ = std::move(*store);
    return {};
  }
  std::unique_ptr<StoreSession> session() override {
    return std::make_unique<PagesSession>(*store_);
  }

 private:
  std::unique_ptr<kv::KvStore> store_;
};

// Gets nothing: the memory of such a run is what the trace takes.
class NoStore final : public OpenStore, public StoreSession {
 public:
  std::unique_ptr<StoreSession> session() override { return std::make_unique<NoStore>(); }
  Outcome<void> gets(std::span<const uint64_t> keys, std::span<const float>,
                     const Take& take) override {
    for (const uint64_t& key : keys) take({reinterpret_cast<const uint8_t*>(&key), sizeof key});
    return {};
  }
};

// ---- a flat CSR file: starts (uint64 for each key, and the end), then the values

class CsrBuilder final : public StoreBuilder {
 public:
  explicit CsrBuilder(uint64_t vertex_count) : starts_(vertex_count + 1) {}
  Outcome<void> create(const std::string& dir) {
    path_ = dir + "/store.csr";
    file_ = Fd(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    return file_ ? Outcome<void>() : os_error(errno, path_, "cannot create");
  }
  Outcome<void> put(uint64_t key, std::span<const uint8_t> value) override {
    for (; next_ <= key; ++next_) starts_[next_] = at_ + values_.size();
    values_.insert(values_.end(), value.begin(), value.end());
    return values_.size() < (size_t{1} << 20) ? Outcome<void>() : flush();
  }
  Outcome<void> finish() override {
    if (auto done = flush(); !done) return done;
    for (; next_ < starts_.size(); ++next_) starts_[next_] = at_;
    const auto done =
        pwrite_full(file_.get(), starts_.data(), starts_.size() * sizeof(uint64_t), 0);
    if (!done || ::fdatasync(file_.get()) != 0) return os_error(errno, path_, "cannot write");
    return {};
  }

 private:
  Outcome<void> flush() {
    const auto done = pwrite_full(file_.get(), values_.data(), values_.size(),
                                  starts_.size() * sizeof(uint64_t) + at_);
    if (!done) return os_error(done.error().code, path_, "cannot write");
    at_ += values_.size();
    values_.clear();
    return {};
  }

  std::string path_;
  Fd file_;
  std::vector<uint64_t> starts_;
  std::vector<uint8_t> values_;
  uint64_t next_ = 0;
  uint64_t at_ = 0;
};

// Reads with MADV_RANDOM: without it the kernel's read-ahead is for runs of pages that these gets
// do not have.
class CsrStore final : public OpenStore, public StoreSession {
 public:
  Outcome<void> open(const std::string& dir) {
    const std::string path = dir + "/store.csr";
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info;
    if (!file || ::fstat(file.get(), &info) != 0) return os_error(errno, path, "cannot open");
    void* const memory =
        ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return os_error(errno, path, "cannot map");
    const char* const advice = std::getenv("GRAPHLANE_CSR_ADVICE");
    const bool sequential = advice != nullptr && std::strcmp(advice, "sequential") == 0;
    ::madvise(memory, static_cast<size_t>(info.st_size),
              sequential ? MADV_SEQUENTIAL : MADV_RANDOM);
    starts_ = static_cast<const uint64_t*>(memory);
    // The count is not in the file: the first start that is 0 bytes behind the table is that of
    // vertex 0.
    size_ = static_cast<size_t>(info.st_size);
    count_ = 0;
    while ((count_ + 1) * sizeof(uint64_t) + starts_[count_] != size_) ++count_;
    values_ = static_cast<const uint8_t*>(memory) + (count_ + 1) * sizeof(uint64_t);
    return {};
  }
  std::unique_ptr<StoreSession> session() override { return std::make_unique<CsrStore>(*this); }
  Outcome<void> gets(std::span<const uint64_t> keys, std::span<const float>,
                     const Take& take) override {
    for (const uint64_t key : keys) take({values_ + starts_[key], starts_[key + 1] - starts_[key]});
    return {};
  }

 private:
  const uint64_t* starts_ = nullptr;
  const uint8_t* values_ = nullptr;
  size_t size_ = 0;
  uint64_t count_ = 0;
};

#ifdef GRAPHLANE_WITH_LMDB
Error lmdb_error(int code, const std::string& path) {
  return make_error(EIO, "{}: {}", path, ::mdb_strerror(code));
}

// Keys are uint32 (MDB_INTEGERKEY); loaded with MDB_APPEND, read with MDB_NORDAHEAD.
class LmdbBuilder final : public StoreBuilder {
 public:
  ~LmdbBuilder() override { ::mdb_env_close(env_); }
  Outcome<void> create(const std::string& dir) {
    path_ = dir + "/store.lmdb";
    ::mdb_env_create(&env_);
    ::mdb_env_set_mapsize(env_, size_t{64} << 30);
    int code = ::mdb_env_open(env_, path_.c_str(), MDB_NOSUBDIR | MDB_NOSYNC, 0644);
    if (code == 0) code = ::mdb_txn_begin(env_, nullptr, 0, &txn_);
    if (code == 0) code = ::mdb_dbi_open(txn_, nullptr, MDB_INTEGERKEY | MDB_CREATE, &dbi_);
    return code == 0 ? Outcome<void>() : lmdb_error(code, path_);
  }
  Outcome<void> put(uint64_t key, std::span<const uint8_t> value) override {
    auto number = static_cast<uint32_t>(key);
    MDB_val k{sizeof number, &number}, v{value.size(), const_cast<uint8_t*>(value.data())};
    const int code = ::mdb_put(txn_, dbi_, &k, &v, MDB_APPEND);
    return code == 0 ? Outcome<void>() : lmdb_error(code, path_);
  }
  Outcome<void> finish() override {
    int code = ::mdb_txn_commit(txn_);
    if (code == 0) code = ::mdb_env_sync(env_, 1);
    return code == 0 ? Outcome<void>() : lmdb_error(code, path_);
  }

 private:
  std::string path_;
  MDB_env* env_ = nullptr;
  MDB_txn* txn_ = nullptr;
  MDB_dbi dbi_ = 0;
};

class LmdbSession final : public StoreSession {
 public:
  LmdbSession(MDB_env* env, MDB_dbi dbi) : dbi_(dbi) {
    ::mdb_txn_begin(env, nullptr, MDB_RDONLY, &txn_);
  }
  ~LmdbSession() override { ::mdb_txn_abort(txn_); }
  Outcome<void> gets(std::span<const uint64_t> keys, std::span<const float>,
                     const Take& take) override {
    for (const uint64_t wanted : keys) {
      auto key = static_cast<uint32_t>(wanted);
      MDB_val k{sizeof key, &key}, v{};
      if (::mdb_get(txn_, dbi_, &k, &v) != 0) return missing(key);
      take({static_cast<const uint8_t*>(v.mv_data), v.mv_size});
    }
    return {};
  }

 private:
  MDB_txn* txn_ = nullptr;
  MDB_dbi dbi_;
};

class LmdbStore final : public OpenStore {
 public:
  ~LmdbStore() override { ::mdb_env_close(env_); }
  Outcome<void> open(const std::string& dir) {
    const std::string path = dir + "/store.lmdb";
    ::mdb_env_create(&env_);
    ::mdb_env_set_mapsize(env_, size_t{64} << 30);
    MDB_txn* txn = nullptr;
    int code =
        ::mdb_env_open(env_, path.c_str(),
                       MDB_NOSUBDIR | MDB_RDONLY | MDB_NORDAHEAD | MDB_NOLOCK | MDB_NOTLS, 0644);
    if (code == 0) code = ::mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn);
    if (code == 0) code = ::mdb_dbi_open(txn, nullptr, MDB_INTEGERKEY, &dbi_);
    if (code == 0) code = ::mdb_txn_commit(txn);
    return code == 0 ? Outcome<void>() : lmdb_error(code, path);
  }
  std::unique_ptr<StoreSession> session() override {
    return std::make_unique<LmdbSession>(env_, dbi_);
  }

 private:
  MDB_env* env_ = nullptr;
  MDB_dbi dbi_ = 0;
};
#endif

#ifdef GRAPHLANE_WITH_ROCKSDB
Error rocks_error(const rocksdb::Status& status) {
  return make_error(EIO, "rocksdb: {}", status.ToString());
}

std::string rocks_key(uint32_t key) {
  const uint32_t big = __builtin_bswap32(key);
  return {reinterpret_cast<const char*>(&big), sizeof big};
}

// No compression, blocks of 8 KiB, a cache of the budget; index and filters in it.
rocksdb::Options rocks_options(uint64_t cache_bytes) {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.use_direct_reads = true;
  options.allow_mmap_reads = false;
  rocksdb::BlockBasedTableOptions table;
  table.block_size = 8192;
  table.block_cache = rocksdb::NewLRUCache(std::max<uint64_t>(cache_bytes, 1 << 20));
  table.cache_index_and_filter_blocks = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return options;
}

class RocksBuilder final : public StoreBuilder {
 public:
  Outcome<void> create(const std::string& dir) {
    rocksdb::DB* db = nullptr;
    const auto status = rocksdb::DB::Open(rocks_options(64 << 20), dir + "/store.rocksdb", &db);
    db_.reset(db);
    return status.ok() ? Outcome<void>() : rocks_error(status);
  }
  Outcome<void> put(uint64_t key, std::span<const uint8_t> value) override {
    rocksdb::WriteOptions options;
    options.disableWAL = true;
    const auto status = db_->Put(options, rocks_key(static_cast<uint32_t>(key)),
                                 {reinterpret_cast<const char*>(value.data()), value.size()});
    return status.ok() ? Outcome<void>() : rocks_error(status);
  }
  Outcome<void> finish() override {
    auto status = db_->Flush({});
    if (status.ok()) status = db_->CompactRange({}, nullptr, nullptr);
    return status.ok() ? Outcome<void>() : rocks_error(status);
  }

 private:
  std::unique_ptr<rocksdb::DB> db_;
};

class RocksStore final : public OpenStore {
 public:
  Outcome<void> open(const std::string& dir, uint64_t cache_bytes) {
    rocksdb::DB* db = nullptr;
    const auto status =
        rocksdb::DB::OpenForReadOnly(rocks_options(cache_bytes), dir + "/store.rocksdb", &db);
    db_.reset(db);
    return status.ok() ? Outcome<void>() : rocks_error(status);
  }
  std::unique_ptr<StoreSession> session() override { return std::make_unique<Session>(*db_); }

 private:
  // MultiGet of 64 keys.
  class Session final : public StoreSession {
   public:
    explicit Session(rocksdb::DB& db) : db_(db) {}
    Outcome<void> gets(std::span<const uint64_t> keys, std::span<const float>,
                       const Take& take) override {
      for (size_t at = 0; at < keys.size(); at += 64) {
        const size_t count = std::min<size_t>(64, keys.size() - at);
        std::vector<std::string> names(count);
        std::vector<rocksdb::Slice> slices(count);
        std::vector<rocksdb::PinnableSlice> values(count);
        std::vector<rocksdb::Status> statuses(count);
        for (size_t i = 0; i < count; ++i) {
          slices[i] = names[i] = rocks_key(static_cast<uint32_t>(keys[at + i]));
        }
        db_.MultiGet({}, db_.DefaultColumnFamily(), count, slices.data(), values.data(),
                     statuses.data());
        for (size_t i = 0; i < count; ++i) {
          if (!statuses[i].ok()) return rocks_error(statuses[i]);
          take({reinterpret_cast<const uint8_t*>(values[i].data()), values[i].size()});
        }
      }
      return {};
    }

   private:
    rocksdb::DB& db_;
  };

  std::unique_ptr<rocksdb::DB> db_;
};
#endif

}  // namespace

Outcome<std::unique_ptr<StoreBuilder>> StoreBuilder::create(const std::string& kind,
                                                            const std::string& dir,
                                                            uint64_t vertex_count) {
  std::filesystem::create_directories(dir);
  const auto created = [&](auto one) -> Outcome<std::unique_ptr<StoreBuilder>> {
    const Outcome<void> done = one->create(dir);
    if (!done) return done.error();
    return std::unique_ptr<StoreBuilder>(std::move(one));
  };
  if (kind == "pages") return created(std::make_unique<PagesBuilder>());
  if (kind == "csr") return created(std::make_unique<CsrBuilder>(vertex_count));
#ifdef GRAPHLANE_WITH_LMDB
  if (kind == "lmdb") return created(std::make_unique<LmdbBuilder>());
#endif
#ifdef GRAPHLANE_WITH_ROCKSDB
  if (kind == "rocksdb") return created(std::make_unique<RocksBuilder>());
#endif
  return make_error(EINVAL, "{}: not a store that this program is built with", kind);
}

Outcome<std::unique_ptr<OpenStore>> OpenStore::open(const std::string& kind, const std::string& dir,
                                                    uint64_t cache_bytes, unsigned threads) {
  const auto opened = [](auto one,
                         const Outcome<void>& done) -> Outcome<std::unique_ptr<OpenStore>> {
    if (!done) return done.error();
    return std::unique_ptr<OpenStore>(std::move(one));
  };
  if (kind == "pages") {
    auto one = std::make_unique<PagesStore>();
    const auto done = one->open(dir, cache_bytes, threads);
    return opened(std::move(one), done);
  }
  if (kind == "none") return opened(std::make_unique<NoStore>(), Outcome<void>());
  if (kind == "csr") {
    auto one = std::make_unique<CsrStore>();
    const auto done = one->open(dir);
    return opened(std::move(one), done);
  }
#ifdef GRAPHLANE_WITH_LMDB
  if (kind == "lmdb") {
    auto one = std::make_unique<LmdbStore>();
    const auto done = one->open(dir);
    return opened(std::move(one), done);
  }
#endif
#ifdef GRAPHLANE_WITH_ROCKSDB
  if (kind == "rocksdb") {
    auto one = std::make_unique<RocksStore>();
    const auto done = one->open(dir, cache_bytes);
    return opened(std::move(one), done);
  }
#endif
  return make_error(EINVAL, "{}: not a store that this program is built with", kind);
}

}  // namespace graphlane::replay
