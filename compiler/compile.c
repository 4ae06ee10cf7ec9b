/* Kernel compilation: see compile.h. */
#include "compiler/compile.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/thread.h"
#include "compiler/kernel.h"
#include "compiler/optimize.h"
#include "compiler/print.h"
#include "compiler/rewrite.h"
#include "compiler/verify.h"

/* What stands in a cache entry before the object. */
struct entry {
    char name[BW_KERNEL_NAME_BYTES];
    uint32_t group_count[3], item_count, param_count, reserved;
};

struct bw_key bw_compile_key(struct bw_ir *ir, bw_node sink, const struct bw_target *target)
{
    struct bw_key graph = bw_ir_key(ir, sink);
    struct bw_target clean;
    memset(&clean, 0, sizeof clean); /* padding and what stands behind strings must not count */
    clean.family = target->family;
    snprintf(clean.cpu, sizeof clean.cpu, "%s", target->cpu);
    snprintf(clean.features, sizeof clean.features, "%s", target->features);
    clean.vector_bytes = target->vector_bytes;
    clean.vector_registers = target->vector_registers;
    clean.wave_size = target->wave_size;
    clean.group_size_max = target->group_size_max;
    clean.lds_bytes = target->lds_bytes;
    clean.workers = target->workers;
    clean.decompose.keep_exp2_log2_f32 = target->decompose.keep_exp2_log2_f32;
    clean.decompose.keep_sin_f64 = target->decompose.keep_sin_f64;
    const char *version = bw_codegen_version();
    XXH128_hash_t hash = XXH3_128bits(&clean, sizeof clean);
    struct bw_key parts[3] = {graph, {{hash.low64, hash.high64}}, {{0, 0}}};
    hash = XXH3_128bits(version, strlen(version));
    parts[2] = (struct bw_key){{hash.low64, hash.high64}};
    hash = XXH3_128bits(parts, sizeof parts);
    return (struct bw_key){{hash.low64, hash.high64}};
}

/* "fold_64x1920_by_576_1a2b3c4d": what a profile should say about it, and unique. */
static void name_kernel(const struct bw_ir *ir, bw_node sink, struct bw_key key, char *name)
{
    struct bw_kernel_ranges ranges = {.count = 0};
    size_t length = 0, room = BW_KERNEL_NAME_BYTES - 10;
    bool known = bw_kernel_ranges(ir, sink, &ranges), reduces = false;
    for (uint32_t i = 0; known && i < ranges.count; i++)
        reduces |= bw_ir_range_kind(ir, ranges.list[i]) == BW_RANGE_REDUCE;
    length = (size_t)snprintf(name, room, "%s", reduces ? "fold" : "map");
    bool by = false;
    for (uint32_t i = 0; known && i < ranges.count && length + 24 < room; i++) {
        bool reduce = bw_ir_range_kind(ir, ranges.list[i]) == BW_RANGE_REDUCE;
        const char *separator = reduce && !by ? "_by_" : i == 0 ? "_" : "x";
        by |= reduce;
        length +=
            (size_t)snprintf(name + length, room - length, "%s%lld", separator, (long long)ranges.sizes[i]);
    }
    snprintf(name + length, BW_KERNEL_NAME_BYTES - length, "_%08x", (unsigned)key.words[0]);
}

static bool from_cache(const struct bw_cache *cache, struct bw_key key, struct bw_compiled *compiled)
{
    void *data;
    uint64_t size_bytes;
    struct entry entry;
    if (!cache || !bw_cache_get(cache, key, &data, &size_bytes))
        return false;
    bool whole = size_bytes > sizeof entry;
    if (whole) {
        memcpy(&entry, data, sizeof entry);
        whole = memchr(entry.name, 0, sizeof entry.name) != NULL;
    }
    if (whole) {
        memcpy(compiled->name, entry.name, sizeof entry.name);
        memcpy(compiled->group_count, entry.group_count, sizeof entry.group_count);
        compiled->item_count = entry.item_count;
        compiled->param_count = entry.param_count;
        compiled->object.size_bytes = size_bytes - sizeof entry;
        memmove(data, (char *)data + sizeof entry, compiled->object.size_bytes);
        compiled->object.data = data;
        compiled->from_cache = true;
    } else
        free(data);
    return whole;
}

static void to_cache(const struct bw_cache *cache, struct bw_key key, const struct bw_compiled *compiled)
{
    uint64_t size_bytes = sizeof(struct entry) + compiled->object.size_bytes;
    char *data = cache ? calloc(1, size_bytes) : NULL;
    if (!data)
        return;
    struct entry entry;
    memset(&entry, 0, sizeof entry);
    memcpy(entry.name, compiled->name, sizeof entry.name);
    memcpy(entry.group_count, compiled->group_count, sizeof entry.group_count);
    entry.item_count = compiled->item_count;
    entry.param_count = compiled->param_count;
    memcpy(data, &entry, sizeof entry);
    memcpy(data + sizeof entry, compiled->object.data, compiled->object.size_bytes);
    bw_cache_put(cache, key, data, size_bytes);
    free(data);
}

static int lower(struct bw_ir *ir, bw_node sink, const struct bw_target *target, struct bw_linear *linear,
                 const struct bw_compile_texts *texts, struct bw_err *err)
{
    int rc = bw_verify_kernel(ir, sink, err);
    if (rc)
        return rc;
    sink = bw_decompose(ir, sink, &target->decompose);
    sink = bw_optimize(ir, sink, target);
    if (!sink)
        return bw_ir_error(ir, err) ? bw_ir_error(ir, err) : bw_fail(err, -ENOMEM, "compile", "optimiser");
    rc = bw_verify_kernel(ir, sink, err);
    if (!rc)
        rc = bw_linearize(ir, sink, linear, err);
    if (!rc && texts && texts->linear)
        bw_print_linear(texts->linear, linear);
    return rc ? rc : bw_verify_linear(linear, err);
}

static int generate(struct bw_ir *ir, bw_node sink, const struct bw_target *target,
                    const struct bw_compile_texts *texts, struct bw_compiled *compiled, struct bw_err *err)
{
    struct bw_linear linear = {0};
    int rc = lower(ir, sink, target, &linear, texts, err);
    if (!rc) {
        memcpy(compiled->group_count, linear.group_count, sizeof linear.group_count);
        compiled->item_count = linear.item_count;
        compiled->param_count = (uint32_t)linear.params.count;
        rc = bw_codegen(&linear, target, compiled->name, &compiled->object, texts ? texts->assembly : NULL,
                        err);
    }
    bw_linear_free(&linear);
    return rc;
}

int bw_compile(const struct bw_ir *shared, bw_node sink, struct bw_key key, const struct bw_target *target,
               const struct bw_cache *cache, const struct bw_compile_texts *texts,
               struct bw_compiled *compiled, struct bw_err *err)
{
    *compiled = (struct bw_compiled){0};
    if (!texts && from_cache(cache, key, compiled))
        return 0;
    struct bw_ir *ir;
    int rc = bw_ir_create(&ir, err);
    if (rc)
        return rc;
    rc = bw_ir_rewrite(ir, shared, &sink, 1, NULL, NULL);
    if (rc)
        bw_fail(err, rc, "compile", "copy of a kernel");
    if (!rc) {
        if (texts && texts->kernel)
            bw_print_graph(texts->kernel, ir, &sink, 1);
        name_kernel(ir, sink, key, compiled->name);
        rc = generate(ir, sink, target, texts, compiled, err);
    }
    bw_ir_destroy(ir);
    if (!rc && !texts)
        to_cache(cache, key, compiled);
    return rc;
}

void bw_compiled_free(struct bw_compiled *compiled)
{
    free(compiled->object.data);
    *compiled = (struct bw_compiled){0};
}

struct crew {
    const struct bw_ir *ir;
    struct bw_compile_job *jobs;
    uint32_t count;
    _Atomic uint32_t next;
    const struct bw_target *target;
    const struct bw_cache *cache;
};

static void *work(void *user)
{
    struct crew *crew = user;
    for (uint32_t i; (i = atomic_fetch_add(&crew->next, 1)) < crew->count;) {
        struct bw_compile_job *job = &crew->jobs[i];
        job->rc = bw_compile(crew->ir, job->sink, job->key, crew->target, crew->cache, NULL, &job->compiled,
                             &job->err);
    }
    return NULL;
}

enum { THREADS_MAX = 8 }; /* compiling is memory-bound beyond, and a process should not take every CPU */

int bw_compile_all(const struct bw_ir *ir, struct bw_compile_job *jobs, uint32_t count,
                   const struct bw_target *target, const struct bw_cache *cache, struct bw_err *err)
{
    struct crew crew = {.ir = ir, .jobs = jobs, .count = count, .target = target, .cache = cache};
    pthread_t threads[THREADS_MAX];
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t wanted = cpus < 1 ? 1 : cpus > THREADS_MAX ? THREADS_MAX : (uint32_t)cpus, started = 0;
    wanted = wanted > count ? count : wanted;
    while (started + 1 < wanted && !bw_thread_create(&threads[started], NULL, work, &crew))
        started++;
    work(&crew);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    for (uint32_t i = 0; i < count; i++)
        if (jobs[i].rc) {
            if (err)
                *err = jobs[i].err;
            return jobs[i].rc;
        }
    return 0;
}
