/* Preloaded: a file system that has no room for what it took, as network ones tell only in the end. */
#include <errno.h>

int fsync(int descriptor) {
    (void)descriptor;
    errno = ENOSPC;
    return -1;
}
