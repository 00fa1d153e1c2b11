// Functions of libraries that are known only at run time.
#pragma once

#include <dlfcn.h>

namespace rocpd {

// Looks a function up in an open library, or with RTLD_DEFAULT in all that are loaded. Returns whether it is there.
template <typename Function>
bool find_function(void* library, Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace rocpd
