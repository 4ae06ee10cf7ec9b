/* A struct bw_sys that forwards to another, counts every kind of call, fails the one it is told to fail, and
 * knows what is still open or mapped. Tests fail each call of a path in turn with it; the same works on a
 * mock and on a real machine. */
#ifndef BW_IFACE_SYS_WRAP_H
#define BW_IFACE_SYS_WRAP_H

#include <stdint.h>

#include <bellwire/sys.h>

enum bw_sys_call {
    BW_SYS_CALL_OPEN,
    BW_SYS_CALL_CLOSE,
    BW_SYS_CALL_READ,
    BW_SYS_CALL_WRITE,
    BW_SYS_CALL_PREAD,
    BW_SYS_CALL_PWRITE,
    BW_SYS_CALL_IOCTL,
    BW_SYS_CALL_MAP,
    BW_SYS_CALL_UNMAP,
    BW_SYS_CALL_PROTECT,
    BW_SYS_CALL_POLL,
    BW_SYS_CALL_LIST,
    BW_SYS_CALL_LOCK,
    BW_SYS_CALL_PCI_SCAN,
    BW_SYS_CALL_SIZE,
    BW_SYS_CALL_RING_OPEN,
    BW_SYS_CALL_NODE,
    BW_SYS_CALL_COUNT,
    BW_SYS_CALL_ANY = BW_SYS_CALL_COUNT, /* all of the above together */
};

/* inner is not owned and must outlive the wrapper. 0 or -ENOMEM. */
int bw_sys_wrap_create(struct bw_sys *inner, struct bw_sys **sys);

/* From now on the nth call of that kind (1 is the next one) returns -error instead, once. error 0 takes the
 * rule back. What is closed or unmapped is really closed or unmapped even when the call is made to fail, as
 * on Linux. A failed ioctl, map or open has no effect. */
void bw_sys_wrap_fail(struct bw_sys *sys, enum bw_sys_call call, uint64_t nth, int error);
/* As when the process is killed in the middle of its nth call of any kind from now (1 is the next one): every
 * descriptor is closed, by nobody who would clean up first, that call and all after it return -error. Memory
 * stays mapped until it is unmapped, since whoever used it still runs in here. Fires like a rule of
 * bw_sys_wrap_fail, of which there is one at a time. */
void bw_sys_wrap_kill(struct bw_sys *sys, uint64_t nth, int error);
/* Whether the rule has fired. */
int bw_sys_wrap_fired(const struct bw_sys *sys);
/* Calls of that kind since creation. */
uint64_t bw_sys_wrap_calls(const struct bw_sys *sys, enum bw_sys_call call);

/* Ends what the interfaces keep per process until bw_sys_destroy, so that the two counts below can be looked
 * at. */
void bw_sys_wrap_settle(struct bw_sys *sys);
/* Descriptors open, and bytes mapped or reserved, through this wrapper. */
uint64_t bw_sys_wrap_open_descriptors(struct bw_sys *sys);
uint64_t bw_sys_wrap_mapped_bytes(struct bw_sys *sys);

/* Takes the clock over: from now on it goes on by tick_ns at each reading, and by what is added, and by
 * nothing else, so that a test of deadlines does not depend on how busy the machine is. Sleeping still takes
 * its real time. */
void bw_sys_wrap_clock_tick(struct bw_sys *sys, uint64_t tick_ns);
void bw_sys_wrap_clock_add(struct bw_sys *sys, uint64_t duration_ns);
/* Readings since creation. */
uint64_t bw_sys_wrap_clock_readings(const struct bw_sys *sys);

const char *bw_sys_call_name(enum bw_sys_call call);

#endif
