// An application that loads the SDK for one library of its own, as extensions of Python do: nobody else finds its
// functions by name. Run with librocpd-tool.so preloaded.
//
// usage: local_probe LIBRARY; exits with 7.
#include <dlfcn.h>

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return 3;
    const auto play = reinterpret_cast<int (*)()>(dlsym(library, "standin_play"));
    return play != nullptr ? play() : 4;
}
