// The few symbols of the C++ runtime that the compiler refers to. The library is
// linked without libstdc++, so that none of it meets the program's own; whatever
// is called here is a bug of ours.
#include <cstddef>
#include <new>

extern "C" [[noreturn]] void __cxa_pure_virtual() { __builtin_trap(); }

// Named by the deleting destructors of IoQueue; queues live in static storage.
void operator delete(void*, std::size_t) noexcept { __builtin_trap(); }
void operator delete(void*) noexcept { __builtin_trap(); }
void operator delete(void*, std::size_t, std::align_val_t) noexcept { __builtin_trap(); }

// Behind string_view::substr(), which checks its argument.
namespace std {
[[noreturn]] void __throw_out_of_range_fmt(const char*, ...) { __builtin_trap(); }
}  // namespace std
