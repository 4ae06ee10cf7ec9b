/* The host's ELF loader against whatever an object may hold: it refuses or loads, and never runs anything. */
#include <stdint.h>
#include <stdlib.h>

#include <bellwire/graph.h>

#include "drivers/driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
    static struct bw_ctx *ctx;
    static struct bw_device *host, *null;
    struct bw_program *program;
    if (!ctx && (bw_ctx_create(NULL, &ctx, NULL) || bw_host_open(ctx, 0, &host, NULL) ||
                 bw_null_open(ctx, &null, NULL)))
        abort();
    if (host->ops->program_load(host, data, size_bytes, &program, NULL) == 0)
        host->ops->program_destroy(program);
    if (null->ops->program_load(null, data, size_bytes, &program, NULL) == 0)
        null->ops->program_destroy(program);
    return 0;
}
