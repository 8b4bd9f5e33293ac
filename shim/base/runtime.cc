// The few symbols of the C++ runtime that the compiler refers to. The library is linked without
// libstdc++, so that it does not meet the program's. Each call here is a bug.
#include <cstddef>
#include <new>

extern "C" [[noreturn]] void __cxa_pure_virtual() { __builtin_trap(); }

// The deleting destructors of IoQueue name it; queues live in static storage.
void operator delete(void*, std::size_t) noexcept { __builtin_trap(); }
void operator delete(void*) noexcept { __builtin_trap(); }
void operator delete(void*, std::size_t, std::align_val_t) noexcept { __builtin_trap(); }

// Referred to by string_view::substr(), which checks its argument.
namespace std {
void __throw_out_of_range_fmt(const char*, ...) { __builtin_trap(); }
}  // namespace std
