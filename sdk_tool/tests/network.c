/* Preloaded: a node whose loopback, card and bond count up at each reading. $NETWORK_DEVICE is the card, if one is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE* counters(void) {
    static int reading = 0;
    static char text[512];
    const int n = ++reading;
    const int size = snprintf(text, sizeof text,
                              "Inter-|   Receive  |  Transmit\n face |bytes packets\n"
                              "    lo: %d 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n"
                              "  eth0: %d 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n"
                              " bond0: %d 0 0 0 0 0 0 0 %d 0 0 0 0 0 0 0\n",
                              7 * n, 7 * n, n, 100 * n, n, 30 * n);
    return fmemopen(text, (size_t)size, "r");
}

static FILE* opened(const char* call, const char* path, const char* mode) {
    if (strcmp(path, "/proc/net/dev") == 0) return counters();
    FILE* (*next)(const char*, const char*) = (FILE * (*)(const char*, const char*))dlsym(RTLD_NEXT, call);
    return next(path, mode);
}

FILE* fopen(const char* path, const char* mode) { return opened("fopen", path, mode); }
FILE* fopen64(const char* path, const char* mode) { return opened("fopen64", path, mode); }

int access(const char* path, int mode) {
    static const char folder[] = "/sys/class/net/";
    const char* card = getenv("NETWORK_DEVICE");
    if (strncmp(path, folder, sizeof folder - 1) == 0) {
        const char* name = path + sizeof folder - 1;
        const size_t size = strcspn(name, "/");
        return card != NULL && strlen(card) == size && strncmp(name, card, size) == 0 ? 0 : -1;
    }
    int (*next)(const char*, int) = (int (*)(const char*, int))dlsym(RTLD_NEXT, "access");
    return next(path, mode);
}
