/* From a kernel graph to an object for a target, through the cache. */
#ifndef BW_COMPILER_COMPILE_H
#define BW_COMPILER_COMPILE_H

#include "compiler/cache.h"
#include "compiler/codegen.h"

enum { BW_KERNEL_NAME_BYTES = 64 };

struct bw_compiled {
    char name[BW_KERNEL_NAME_BYTES];
    uint32_t group_count[3], item_count, param_count;
    struct bw_object object;
    bool from_cache;
};

/* Copies the kernel out of `ir`, which is only read (but for its keys, see bw_compile_key). Texts may be
 * NULL; asking for one bypasses the cache. */
struct bw_compile_texts {
    struct bw_text *kernel, *linear, *assembly;
};
int bw_compile(const struct bw_ir *ir, bw_node sink, struct bw_key key, const struct bw_target *target,
               const struct bw_cache *cache, const struct bw_compile_texts *texts,
               struct bw_compiled *compiled, struct bw_err *err);
void bw_compiled_free(struct bw_compiled *compiled);

/* What a compiled kernel depends on: the graph, the target, the compiler. */
struct bw_key bw_compile_key(struct bw_ir *ir, bw_node sink, const struct bw_target *target);

/* Compiles many, on a few threads of its own. jobs[i].rc and err say how each went; the first failure is
 * returned. */
struct bw_compile_job {
    bw_node sink;
    struct bw_key key;
    struct bw_compiled compiled;
    int rc;
    struct bw_err err;
};
int bw_compile_all(const struct bw_ir *ir, struct bw_compile_job *jobs, uint32_t count,
                   const struct bw_target *target, const struct bw_cache *cache, struct bw_err *err);

#endif
