// C++ over graphlane_kv.h: a store of keys K and values V (MaiterStore §3.5). Errors are exceptions.
//
//   class Links : public graphlane::KvStore<uint32_t, std::vector<uint32_t>> {
//     void parseKV(const std::string& line, uint32_t* vid, std::vector<uint32_t>* list) override { … }
//   };
//
// K is an unsigned or signed integer of up to 64 bits, or an enumeration. V is a std::string, a number, a struct that can be
// copied as bytes, or a std::vector of such: KvBytes<V> says how; specialize it for other types.
#ifndef GRAPHLANE_KV_HPP
#define GRAPHLANE_KV_HPP

#include <graphlane_kv.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <functional>
#include <istream>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace graphlane {

class KvError : public std::runtime_error {
 public:
  KvError(int error_code, const char* what) : std::runtime_error(what), code(error_code) {}
  const int code;  // an errno
};

// Keys as numbers in the same order.
template <class K>
struct KvKey {
  static_assert(std::is_integral_v<K> || std::is_enum_v<K>, "a key is an integer, or KvKey is specialized for it");
  static constexpr uint64_t kFlip = std::is_signed_v<K> ? uint64_t{1} << 63 : 0;
  static uint64_t number(K key) { return static_cast<uint64_t>(static_cast<int64_t>(key)) ^ kFlip; }
  static K key(uint64_t number) { return static_cast<K>(number ^ kFlip); }
};

// Values as bytes.
template <class V>
struct KvBytes {
  static_assert(std::is_trivially_copyable_v<V>, "a value can be copied as bytes, or KvBytes is specialized for it");
  static std::pair<const void*, size_t> bytes(const V& value) { return {&value, sizeof value}; }
  static V value(const void* data, size_t size) {
    if (size != sizeof(V)) throw KvError(EINVAL, "a value of another length");
    V value;
    std::memcpy(&value, data, size);
    return value;
  }
};
template <class T>
struct KvBytes<std::vector<T>> {
  static_assert(std::is_trivially_copyable_v<T>);
  static std::pair<const void*, size_t> bytes(const std::vector<T>& value) { return {value.data(), value.size() * sizeof(T)}; }
  static std::vector<T> value(const void* data, size_t size) {
    if (size % sizeof(T) != 0) throw KvError(EINVAL, "a value of another length");
    std::vector<T> value(size / sizeof(T));
    if (size > 0) std::memcpy(value.data(), data, size);
    return value;
  }
};
template <>
struct KvBytes<std::string> {
  static std::pair<const void*, size_t> bytes(const std::string& value) { return {value.data(), value.size()}; }
  static std::string value(const void* data, size_t size) { return size == 0 ? "" : std::string(static_cast<const char*>(data), size); }
};

// A value where it lies.
class KvPin {
 public:
  KvPin() = default;
  explicit KvPin(graphlane_kv_value value) : value_(value), is_found_(true) {}
  KvPin(KvPin&& other) noexcept : value_(std::exchange(other.value_, {})), is_found_(std::exchange(other.is_found_, false)) {}
  KvPin& operator=(KvPin&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(is_found_, other.is_found_);
    return *this;
  }
  ~KvPin() { graphlane_kv_release(&value_); }
  // Whether the store has the key.
  explicit operator bool() const { return is_found_; }
  const void* data() const { return value_.data; }
  size_t size() const { return value_.size; }
  // Its bytes as an array. T's alignment is the caller's to know: uint32_t is right where all values are such arrays.
  template <class T>
  const T* begin() const { return static_cast<const T*>(value_.data); }
  template <class T>
  const T* end() const { return begin<T>() + value_.size / sizeof(T); }

 private:
  graphlane_kv_value value_ = {};
  bool is_found_ = false;
};

// One thread's. To write, then to read: put() … finish(), or load(); then open().
template <class K, class V>
class KvStore {
 public:
  virtual ~KvStore() = default;
  // From a line of text to a key and its value, for load().
  virtual void parseKV(const std::string& line, K* vid, V* value) {
    (void)line, (void)vid, (void)value;
    throw KvError(ENOTSUP, "parseKV is not overridden");
  }

  // ---- writing
  void create(const std::string& path, uint32_t page_bytes = 0) {
    graphlane_kv_writer* writer = nullptr;
    check(graphlane_kv_create(path.c_str(), page_bytes, &writer));
    writer_.reset(writer);
  }
  void append(const std::string& path) {
    graphlane_kv_writer* writer = nullptr;
    check(graphlane_kv_append(path.c_str(), &writer));
    writer_.reset(writer);
  }
  // Keys ascend.
  void put(const K& vid, const V& value) {
    const auto [data, size] = KvBytes<V>::bytes(value);
    check(graphlane_kv_put(writer_.get(), KvKey<K>::number(vid), data, size));
  }
  // Puts what parseKV makes of each line. Returns how many.
  size_t load(std::istream& lines) {
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      K vid{};
      V value{};
      parseKV(line, &vid, &value);
      put(vid, value);
    }
    return count;
  }
  void sync() { check(graphlane_kv_sync(writer_.get())); }
  void finish() {
    check(graphlane_kv_finish(writer_.get()));
    writer_.reset();
  }

  // ---- reading
  void open(const std::string& path, const graphlane_kv_options& options = {}) {
    reader_.reset();
    graphlane_kv* store = nullptr;
    check(graphlane_kv_open(path.c_str(), &options, &store));
    store_.reset(store);
    graphlane_kv_reader* reader = nullptr;
    check(graphlane_kv_reader_open(store, &reader));
    reader_.reset(reader);
  }
  // KvError with ENOENT: there is no such key.
  V get(const K& vid, float hotness = 0) {
    const KvPin value = pin(vid, hotness);
    if (!value) throw KvError(ENOENT, graphlane_kv_error());
    return KvBytes<V>::value(value.data(), value.size());
  }
  // Without a copy; false: there is no such key.
  KvPin pin(const K& vid, float hotness = 0) {
    graphlane_kv_value value;
    const int error = graphlane_kv_get(reader_.get(), KvKey<K>::number(vid), hotness, &value);
    if (error == ENOENT) return KvPin();
    check(error);
    return KvPin(value);
  }
  // visit(key, value) for all from `first` on, in order.
  void each(const K& first, const std::function<void(const K&, const V&)>& visit) {
    struct Walk {
      const std::function<void(const K&, const V&)>& visit;
      std::exception_ptr thrown;  // none goes through the library
    } walk{visit, nullptr};
    const int error = graphlane_kv_each(
        reader_.get(), KvKey<K>::number(first),
        [](void* context, uint64_t key, const void* data, size_t size) {
          Walk& here = *static_cast<Walk*>(context);
          try {
            here.visit(KvKey<K>::key(key), KvBytes<V>::value(data, size));
            return 0;
          } catch (...) {
            here.thrown = std::current_exception();
            return ECANCELED;
          }
        },
        &walk);
    if (walk.thrown) std::rethrow_exception(walk.thrown);
    check(error);
  }
  uint64_t key_count() const { return graphlane_kv_key_count(store_.get()); }

 private:
  static void check(int error) {
    if (error != 0) throw KvError(error, graphlane_kv_error());
  }
  struct Close {
    void operator()(graphlane_kv* store) const { graphlane_kv_close(store); }
    void operator()(graphlane_kv_reader* reader) const { graphlane_kv_reader_close(reader); }
    void operator()(graphlane_kv_writer* writer) const { graphlane_kv_writer_close(writer); }
  };
  std::unique_ptr<graphlane_kv_writer, Close> writer_;
  std::unique_ptr<graphlane_kv, Close> store_;
  std::unique_ptr<graphlane_kv_reader, Close> reader_;  // ends before the store
};

}  // namespace graphlane

#endif
