// Line: an assembly line of threads over a stream of items, in order at both
// ends.
//
//   load     one at a time, in order      read the next chunk of a file
//   work     many at once                 parse it
//   unload   one at a time, in order      append what was parsed
//   settle   many at once                 what unload() made due
//
// Every thread carries one item through all four steps and starts again with the same item and its
// buffers. So there is no queue, and memory is threads × one item. The caller's thread is one of
// them.
//
// Errors: of load, work and unload the error that is first in the stream is reported, so it does
// not depend on the number of threads. An error of settle ends the line at once. An interrupt is an
// error of load.
#pragma once

#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/base/mutex.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::graphfmt {

// The cores that this process may run on, or `requested` if that is not 0.
unsigned usable_threads(unsigned requested);

// Runs body() on `threads` threads, this one included, until all return. A core
// that is refused (EAGAIN) is done without.
template <class Body>
void on_threads(unsigned threads, const Body& body) {
  std::vector<std::thread> others;
  try {
    others.reserve(threads);
    while (others.size() + 1 < threads) others.emplace_back(body);
  } catch (const std::system_error&) {
  }
  body();
  for (std::thread& other : others) other.join();
}

// Calls task(), and turns an allocation that fails into an Error.
template <class Task>
auto or_no_memory(const Task& task) -> decltype(task()) {
  try {
    return task();
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, "out of memory");
  }
}

template <class Item>
class Line {
 public:
  std::function<Outcome<bool>(Item&)> load;  // false: the stream has ended
  std::function<Outcome<void>(Item&)> work = [](Item&) { return Outcome<void>(); };
  std::function<Outcome<void>(Item&)> unload = [](Item&) { return Outcome<void>(); };
  std::function<Outcome<void>(Item&)> settle = [](Item&) { return Outcome<void>(); };

  Outcome<void> run(unsigned threads) {
    on_threads(threads, [this] {
      Item item{};
      while (pass(item)) {
      }
    });
    MutexLock lock(turn_mu_);
    if (error_) return *error_;
    return {};
  }

 private:
  // One item through the line; false when there is nothing more to do.
  bool pass(Item& item) {
    uint64_t ticket = 0;
    Outcome<bool> loaded = next(item, ticket);
    if (loaded && !*loaded) return false;
    Outcome<void> done = loaded ? or_no_memory([&] { return work(item); }) : loaded.error();
    if (!await_turn(ticket)) return false;
    if (done) done = or_no_memory([&] { return unload(item); });
    if (!done) return fail(done.error());
    end_turn(ticket);
    done = or_no_memory([&] { return settle(item); });
    return done ? true : fail(done.error());
  }

  // An error takes a ticket as well: it is reported when its turn comes.
  Outcome<bool> next(Item& item, uint64_t& ticket) {
    MutexLock lock(load_mu_);
    if (ended_) return false;
    const Outcome<void> go_on = check_interrupt();
    Outcome<bool> loaded =
        go_on ? or_no_memory([&] { return load(item); }) : Outcome<bool>(go_on.error());
    ended_ = !loaded || !*loaded;
    ticket = ticket_count_;
    if (!loaded || *loaded) ++ticket_count_;
    return loaded;
  }

  bool await_turn(uint64_t ticket) {
    MutexLock lock(turn_mu_);
    while (turn_ != ticket && !error_) turn_changed_.wait(turn_mu_);
    return !error_;
  }

  void end_turn(uint64_t ticket) {
    MutexLock lock(turn_mu_);
    turn_ = ticket + 1;
    turn_changed_.notify_all();
  }

  bool fail(const Error& error) {
    {
      MutexLock lock(turn_mu_);
      if (!error_) error_ = error;
      turn_changed_.notify_all();
    }
    MutexLock lock(load_mu_);
    ended_ = true;
    return false;
  }

  Mutex load_mu_;
  bool ended_ GUARDED_BY(load_mu_) = false;
  uint64_t ticket_count_ GUARDED_BY(load_mu_) = 0;

  Mutex turn_mu_;
  CondVar turn_changed_;
  uint64_t turn_ GUARDED_BY(turn_mu_) = 0;
  std::optional<Error> error_ GUARDED_BY(turn_mu_);
};

// task(index, state) for every index below `count`, on `threads` threads, in no
// particular order; `state` belongs to the thread. Ends early on an error. The
// tasks run as settle, so that a long one holds up none of the others.
template <class State, class Task>
Outcome<void> for_each_index(unsigned threads, size_t count, const Task& task) {
  size_t next = 0;
  struct Item {
    size_t index = 0;
    State state;
  };
  Line<Item> line;
  line.load = [&](Item& item) -> Outcome<bool> {
    item.index = next;
    return next++ < count;
  };
  line.settle = [&](Item& item) { return task(item.index, item.state); };
  return line.run(threads);
}

}  // namespace graphlane::graphfmt
