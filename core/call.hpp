// A function that is called during another function's call, as a reference. The compiler generates less code for each
// lambda expression than for a std::function.
#pragma once
#include <memory>
#include <type_traits>

namespace elimina {

template <class Signature>
class Call;

template <class Result, class... Arguments>
class Call<Result(Arguments...)> {
 public:
  template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, Call>)
  Call(const Function& function)
      : object_(std::addressof(function)), run_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(object))(arguments...);
        }) {}

  Result operator()(Arguments... arguments) const { return run_(object_, arguments...); }

 private:
  const void* object_;
  Result (*run_)(const void*, Arguments...);
};

}  // namespace elimina
