/* Any bytes as a code object: loaded, or refused with an error, never anything else. */
#include <stddef.h>
#include <stdlib.h>

#include "drivers/amd/code_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bw_amd_code_object object;
    struct bw_err err = {0};
    int rc = bw_amd_code_object_parse(&object, bw_amd_arch_find("gfx1100"), data, size, &err);
    if (!rc)
        rc = bw_amd_code_object_link(&object, 0x7f0000000000, &err);
    if (rc > 0 || (rc < 0 && (err.code != rc || !err.what[0])))
        abort();
    bw_amd_code_object_free(&object);
    return 0;
}
