// FunctionRef: a callable that is passed down and called before the caller returns, as
// std::function_ref of C++26. Neither owns nor allocates. A function is passed by its address.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace graphlane {

template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& callable)
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* target, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(target))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  void* callable_;
  R (*call_)(void*, Args...);
};

}  // namespace graphlane
