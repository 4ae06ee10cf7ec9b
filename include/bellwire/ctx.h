/* A context: the root of everything. No state lives outside one; two contexts in one process work. */
#ifndef BW_CTX_H
#define BW_CTX_H

#include <stdint.h>

#include <bellwire/err.h>
#include <bellwire/sys.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bw_ctx;

/* Parsed once, at the edge (bw_ctx_config_from_environment), never read from the environment elsewhere. */
struct bw_ctx_config {
    uint64_t size;         /* sizeof this struct, for growth */
    const char *device;    /* default device name; NULL: see bw_device_open */
    uint64_t wait_ns;      /* deadline without progress of every wait; 0: 30 s */
    uint32_t host_threads; /* workers of host devices; 0: one per CPU */
    uint32_t mock_threads; /* emulator threads of mock devices; 0: one per CPU */
    const char
        *cache_dir;     /* compiled kernels; NULL: $XDG_CACHE_HOME/bellwire or ~/.cache/bellwire; "" = none */
    struct bw_sys *sys; /* OS seam to use for real devices; NULL: the host's. Not owned. */
    uint64_t timeline_start; /* first value of every queue's timeline: tests of rollover start just below 2^32
                                or 2^64 */
    const char *mock_faults; /* what befalls mock devices: specifications of bw_mock_fault_add, separated by
                                semicolons, added when a mock machine is made; NULL: nothing */
    const char *mock_trace;  /* file to which mock machines append what they do (bw_mock_trace); NULL: none */
    uint64_t ring_bytes;     /* of every queue that has a ring, a power of two from 4 KiB to 1 MiB; 0: the
                                driver's     own choice. Tests of full rings start with small ones */
};

/* Fills config with defaults and BW_DEV, BW_WAIT_MS, BW_HOST_THREADS, BW_MOCK_THREADS, BW_MOCK_FAULTS,
 * BW_MOCK_TRACE, BW_CACHE. Strings point into the environment. -EINVAL names a variable that cannot be
 * parsed. */
int bw_ctx_config_from_environment(struct bw_ctx_config *config, struct bw_err *err);

/* config may be NULL (defaults, no environment). The caller ends it with bw_ctx_destroy after closing its
 * devices. */
int bw_ctx_create(const struct bw_ctx_config *config, struct bw_ctx **ctx, struct bw_err *err);
/* NULL is fine. */
void bw_ctx_destroy(struct bw_ctx *ctx);
/* What it was created with, and the OS seam that it uses; both live as long as the context. */
const struct bw_ctx_config *bw_ctx_config(const struct bw_ctx *ctx);
struct bw_sys *bw_ctx_sys(struct bw_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
