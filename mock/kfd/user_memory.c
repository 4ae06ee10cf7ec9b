#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mock/kfd/kfd.h"

/* The kernel pins user pages and fails with EFAULT where it cannot. In one process the engines use the
 * client's own pointer, so that a page that is not there would end the program: look at the map first. */
bool bw_mock_user_memory_ok(const void *base, uint64_t size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    uint64_t at = (uintptr_t)base, end = at + size;
    char *line = NULL;
    size_t room = 0;
    bool good = end > at;
    while (good && at < end && getline(&line, &room, maps) > 0) {
        unsigned long long from, to;
        char rights[5];
        if (sscanf(line, "%llx-%llx %4s", &from, &to, rights) != 3 || to <= at)
            continue;
        good = from <= at && rights[0] == 'r' && rights[1] == 'w';
        at = to;
    }
    free(line);
    fclose(maps);
    return good && at >= end;
}

bool bw_mock_user_copy(void *target, uint64_t source, uint64_t size)
{
    struct iovec to = {target, size}, from = {(void *)(uintptr_t)source, size};
    return !size || process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}
