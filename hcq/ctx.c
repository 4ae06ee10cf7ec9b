/* Contexts: see include/bellwire/ctx.h. The only place of the library that reads the environment. */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/number.h"
#include "hcq/hcq.h"

#define FORK_MARK 0x62656c6c77697265ull /* "bellwire": what a forked child does not see any more */
#define NS_PER_MS 1000000ull

enum {
    FORK_PAGE_BYTES = 4096,
    TURN_SPINS = 1000, /* a submission takes a few microseconds; then the other thread may need this CPU */
    THREADS_MAX = 1024,
};

static int number_read(const char *name, uint64_t maximum, uint64_t *value, struct bw_err *err)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return 0;
    uint64_t number;
    if (bw_number_parse(text, &number) || number > maximum) {
        bw_fail(err, -EINVAL, "config", "environment variable %s", name);
        bw_err_expected(err, "a number up to %llu", (unsigned long long)maximum);
        bw_err_observed(err, "%.80s", text);
        return -EINVAL;
    }
    *value = number;
    return 0;
}

int bw_ctx_config_from_environment(struct bw_ctx_config *config, struct bw_err *err)
{
    uint64_t wait_ms = 0, host_threads = 0, mock_threads = 0;
    *config = (struct bw_ctx_config){.size = sizeof *config};
    int rc = number_read("BW_WAIT_MS", UINT64_MAX / NS_PER_MS, &wait_ms, err);
    if (!rc)
        rc = number_read("BW_HOST_THREADS", THREADS_MAX, &host_threads, err);
    if (!rc)
        rc = number_read("BW_MOCK_THREADS", THREADS_MAX, &mock_threads, err);
    if (rc)
        return rc;
    const char *device = getenv("BW_DEV");
    config->device = device && *device ? device : NULL;
    config->wait_ns = wait_ms * NS_PER_MS;
    config->host_threads = (uint32_t)host_threads;
    config->mock_threads = (uint32_t)mock_threads;
    config->cache_dir = getenv("BW_CACHE");
    const char *faults = getenv("BW_MOCK_FAULTS");
    config->mock_faults = faults && *faults ? faults : NULL;
    const char *trace = getenv("BW_MOCK_TRACE");
    config->mock_trace = trace && *trace ? trace : NULL;
    return 0;
}

/* $XDG_CACHE_HOME/bellwire, ~/.cache/bellwire, or none. malloc'd; NULL: none. A home that does not exist may
 * be meant not to (Debian Policy 9.2.3, /nonexistent): it is not made. */
static char *cache_dir_default(void)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (home && access(home, X_OK))
        home = NULL;
    char *path = NULL;
    int length = xdg && *xdg == '/'     ? asprintf(&path, "%s/bellwire", xdg)
                 : home && *home == '/' ? asprintf(&path, "%s/.cache/bellwire", home)
                                        : -1;
    return length < 0 ? NULL : path;
}

/* What every kernel driver takes: a page, and more than anybody has in flight. */
enum { RING_BYTES_MIN = 4096, RING_BYTES_MAX = 1 << 20 };

static int ring_bytes_check(uint64_t ring_bytes, struct bw_err *err)
{
    if (!ring_bytes ||
        (bw_is_pow2(ring_bytes) && ring_bytes >= RING_BYTES_MIN && ring_bytes <= RING_BYTES_MAX))
        return 0;
    bw_fail(err, -EINVAL, "config", "ring_bytes");
    bw_err_expected(err, "0, or a power of two from %d to %d", RING_BYTES_MIN, RING_BYTES_MAX);
    bw_err_observed(err, "%llu", (unsigned long long)ring_bytes);
    return -EINVAL;
}

/* Takes over what the caller's struct has, which may be of an older size. */
static int config_copy(struct bw_ctx *ctx, const struct bw_ctx_config *config, struct bw_err *err)
{
    ctx->config = (struct bw_ctx_config){.size = sizeof ctx->config};
    if (config) {
        if (config->size < offsetof(struct bw_ctx_config, device) || config->size > sizeof *config) {
            bw_fail(err, -EINVAL, "config", "size of struct bw_ctx_config");
            bw_err_expected(err, "at most %zu", sizeof *config);
            bw_err_observed(err, "%llu", (unsigned long long)config->size);
            return -EINVAL;
        }
        memcpy(&ctx->config, config, config->size);
        ctx->config.size = sizeof ctx->config;
        int rc = ring_bytes_check(ctx->config.ring_bytes, err);
        if (rc) {
            ctx->config = (struct bw_ctx_config){0}; /* the strings are the caller's */
            return rc;
        }
    }
    const char **strings[] = {&ctx->config.device, &ctx->config.cache_dir, &ctx->config.mock_faults,
                              &ctx->config.mock_trace};
    bool failed = false;
    for (size_t i = 0; i < BW_COUNT_OF(strings); i++) {
        const char *callers = *strings[i];
        *strings[i] = callers ? strdup(callers) : NULL;
        failed |= callers && !*strings[i];
    }
    if (failed)
        return bw_fail(err, -ENOMEM, "config", "context");
    if (!ctx->config.cache_dir)
        ctx->config.cache_dir = cache_dir_default();
    if (!ctx->config.wait_ns)
        ctx->config.wait_ns = BW_HCQ_WAIT_NS_DEFAULT;
    return 0;
}

static int fork_page_map(struct bw_ctx *ctx, struct bw_err *err)
{
    struct bw_map_request request = {
        .fd = -1, .size_bytes = FORK_PAGE_BYTES, .writable = true, .wipe_on_fork = true};
    int rc = ctx->host_sys->ops->map(ctx->host_sys, &request, &ctx->fork_page);
    if (rc)
        return bw_fail(err, rc, "config", "a page that is wiped on fork");
    bw_wr64(&ctx->fork_page, 0, FORK_MARK);
    return 0;
}

int bw_ctx_create(const struct bw_ctx_config *config, struct bw_ctx **out, struct bw_err *err)
{
    struct bw_ctx *ctx = calloc(1, sizeof *ctx);
    if (!ctx)
        return bw_fail(err, -ENOMEM, "config", "context");
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_mutex_init(&ctx->peer_lock, NULL);
    int rc = config_copy(ctx, config, err);
    if (!rc) {
        rc = bw_sys_host_create(&ctx->host_sys);
        if (!rc)
            ctx->host_sys->wait_ns = ctx->config.wait_ns;
        else
            bw_fail(err, rc, "config", "operating system interface");
    }
    if (!rc)
        rc = fork_page_map(ctx, err);
    if (rc) {
        bw_ctx_destroy(ctx);
        return rc;
    }
    ctx->sys = ctx->config.sys ? ctx->config.sys : ctx->host_sys;
    *out = ctx;
    return 0;
}

void bw_ctx_destroy(struct bw_ctx *ctx)
{
    if (!ctx || (ctx->fork_page.size_bytes && bw_ctx_forked(ctx)))
        return; /* in a forked child everything behind it is the parent's; what is left goes with the process
                 */
    for (uint32_t i = 0; i < BW_HCQ_DEVICES_MAX; i++)
        assert(!ctx->devices[i]); /* the caller closes its devices first */
    assert(!ctx->machines);
    if (ctx->fork_page.size_bytes)
        ctx->host_sys->ops->unmap(ctx->host_sys, &ctx->fork_page);
    if (ctx->host_sys)
        bw_sys_destroy(ctx->host_sys);
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&ctx->peer_lock);
    free((char *)(uintptr_t)ctx->config.device);
    free((char *)(uintptr_t)ctx->config.cache_dir);
    free((char *)(uintptr_t)ctx->config.mock_faults);
    free((char *)(uintptr_t)ctx->config.mock_trace);
    free(ctx);
}

const struct bw_ctx_config *bw_ctx_config(const struct bw_ctx *ctx)
{
    return &ctx->config;
}

struct bw_sys *bw_ctx_sys(struct bw_ctx *ctx)
{
    return ctx->sys;
}

bool bw_ctx_forked(const struct bw_ctx *ctx)
{
    return bw_rd64(&ctx->fork_page, 0) != FORK_MARK;
}

void bw_hcq_turn_take(struct bw_ctx *ctx)
{
    for (uint32_t spin = 0; __atomic_exchange_n(&ctx->turn, 1, __ATOMIC_ACQUIRE); spin++) {
        if (spin >= TURN_SPINS)
            sched_yield();
    }
}

void bw_hcq_turn_give(struct bw_ctx *ctx)
{
    assert(__atomic_load_n(&ctx->turn, __ATOMIC_RELAXED) == 1);
    __atomic_store_n(&ctx->turn, 0, __ATOMIC_RELEASE);
}
