/* Goal: the wrapper that tests lean on counts, fails and finds leaks as it says, so that a test that finds
 * none means something. */
#include <bellwire/sys.h>

#include <errno.h>
#include <fcntl.h>

#include "iface/sys_wrap.h"
#include "tests/check.h"

static void fails_exactly_the_call_that_was_named(void)
{
    struct bw_sys *host, *sys;
    char byte;
    BW_EQ(bw_sys_host_create(&host), 0);
    BW_EQ(bw_sys_wrap_create(host, &sys), 0);
    int fd = sys->ops->open(sys, "/dev/zero", O_RDONLY);
    BW_TRUE(fd >= 0);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_READ, 2, EREMOTEIO);
    BW_EQ(sys->ops->read(sys, fd, &byte, 1), 1);
    BW_EQ(bw_sys_wrap_fired(sys), 0);
    BW_EQ(sys->ops->pread(sys, fd, &byte, 1, 0), 1);
    BW_EQ(sys->ops->read(sys, fd, &byte, 1), -EREMOTEIO);
    BW_EQ(bw_sys_wrap_fired(sys), 1);
    BW_EQ(sys->ops->read(sys, fd, &byte, 1), 1);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_ANY, 1, EIO);
    BW_EQ(sys->ops->pread(sys, fd, &byte, 1, 0), -EIO);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_OPEN, 1, EMFILE);
    BW_EQ(sys->ops->open(sys, "/dev/zero", O_RDONLY), -EMFILE);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_OPEN, 1, EMFILE);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_OPEN, 1, 0); /* taken back */
    int second = sys->ops->open(sys, "/dev/zero", O_RDONLY);
    BW_TRUE(second >= 0);
    BW_EQ(bw_sys_wrap_calls(sys, BW_SYS_CALL_READ), 3);
    BW_EQ(bw_sys_wrap_calls(sys, BW_SYS_CALL_OPEN), 3);
    BW_EQ(bw_sys_wrap_calls(sys, BW_SYS_CALL_ANY), 8);
    BW_EQ(sys->calls, 8);
    BW_EQ(bw_sys_wrap_open_descriptors(sys), 2);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_CLOSE, 1, EIO);
    BW_EQ(sys->ops->close(sys, fd), -EIO); /* closed all the same */
    BW_EQ(fcntl(fd, F_GETFD), -1);
    BW_EQ(sys->ops->close(sys, fd), -EBADF);
    BW_EQ(bw_sys_wrap_open_descriptors(sys), 1);
    BW_EQ(sys->ops->close(sys, second), 0);
    bw_sys_destroy(sys);
    bw_sys_destroy(host);
}

/* Descriptors end with the process, memory with whoever used it. */
static void whoever_is_killed_makes_no_call_any_more(void)
{
    struct bw_sys *host, *sys;
    struct bw_region region;
    char byte;
    BW_EQ(bw_sys_host_create(&host), 0);
    BW_EQ(bw_sys_wrap_create(host, &sys), 0);
    int first = sys->ops->open(sys, "/dev/zero", O_RDONLY),
        second = sys->ops->open(sys, "/dev/zero", O_RDONLY);
    struct bw_map_request request = {.fd = -1, .size_bytes = 4096, .writable = true};
    BW_EQ(sys->ops->map(sys, &request, &region), 0);
    bw_sys_wrap_kill(sys, 2, EREMOTEIO);
    BW_EQ(sys->ops->read(sys, first, &byte, 1), 1);
    BW_EQ(bw_sys_wrap_fired(sys), 0);
    BW_EQ(sys->ops->read(sys, first, &byte, 1), -EREMOTEIO);
    BW_EQ(bw_sys_wrap_fired(sys), 1);
    BW_EQ(fcntl(first, F_GETFD), -1);
    BW_EQ(fcntl(second, F_GETFD), -1);
    BW_EQ(bw_sys_wrap_open_descriptors(sys), 0);
    BW_EQ(sys->ops->open(sys, "/dev/zero", O_RDONLY), -EREMOTEIO);
    int other = host->ops->open(host, "/dev/zero", O_RDONLY); /* somebody else's, of the same number */
    BW_EQ(other, first);
    BW_EQ(sys->ops->close(sys, first), -EREMOTEIO);
    BW_EQ(host->ops->close(host, other), 0);
    *(volatile char *)region.base = 1; /* still there */
    BW_EQ(sys->ops->unmap(sys, &region), -EREMOTEIO);
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 0);
    bw_sys_destroy(sys);
    bw_sys_destroy(host);
}

static void mappings_are_counted_by_the_byte(void)
{
    struct bw_sys *host, *sys;
    struct bw_region whole, inner, other;
    BW_EQ(bw_sys_host_create(&host), 0);
    BW_EQ(bw_sys_wrap_create(host, &sys), 0);
    struct bw_map_request request = {.fd = -1, .size_bytes = 65536, .reserve = true};
    BW_EQ(sys->ops->map(sys, &request, &whole), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 65536);
    request = (struct bw_map_request){.fd = -1,
                                      .size_bytes = 8192,
                                      .writable = true,
                                      .fixed_address = (uint64_t)(uintptr_t)whole.base + 4096};
    BW_EQ(sys->ops->map(sys, &request, &inner), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 65536); /* in place of a part of the reservation */
    request.fixed_address = 0;
    BW_EQ(sys->ops->map(sys, &request, &other), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 65536 + 8192);
    bw_sys_wrap_fail(sys, BW_SYS_CALL_UNMAP, 1, EIO);
    BW_EQ(sys->ops->unmap(sys, &other), -EIO); /* unmapped all the same */
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 65536);
    BW_EQ(sys->ops->unmap(sys, &whole), 0);
    BW_EQ(bw_sys_wrap_mapped_bytes(sys), 0);
    BW_STR(bw_sys_call_name(BW_SYS_CALL_ANY), "any");
    BW_STR(bw_sys_call_name(BW_SYS_CALL_PROTECT), "protect");
    bw_sys_destroy(sys);
    bw_sys_destroy(host);
}

BW_TEST_MAIN("iface.sys_wrap",
             {"fails exactly the call that was named", fails_exactly_the_call_that_was_named},
             {"whoever is killed makes no call any more", whoever_is_killed_makes_no_call_any_more},
             {"mappings are counted by the byte", mappings_are_counted_by_the_byte})
