// Compares our declaration of a library's function with the library's header.
//
// SPDX-License-Identifier: MIT
#pragma once

#include <type_traits>

namespace plumbline::test {

/// Whether a function of the header and ours are the same, except that handles have their own types
/// and enumerations are ints.
template <class Ours, class Theirs>
struct SameType : std::is_same<Ours, Theirs> {};
template <class Ours, class Theirs>
requires(std::is_pointer_v<Ours>&& std::is_pointer_v<Theirs>) struct SameType<Ours, Theirs>
    : std::true_type {
};
template <class Ours, class Theirs>
requires(std::is_enum_v<Theirs> && !std::is_pointer_v<Ours>) struct SameType<Ours, Theirs>
    : std::bool_constant<std::is_same_v<Ours, int> && sizeof(Theirs) == sizeof(int)> {
};

template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct SameCall<R (*)(A...), S (*)(B...)>
    : std::bool_constant<SameType<R, S>::value &&
                         (SameType<A, std::remove_const_t<B>>::value && ...)> {
};

}  // namespace plumbline::test
