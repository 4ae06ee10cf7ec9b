/* Any words as AQL packets, which are all of one length: printed to the end, with at most one problem for
 * each that has begun. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "drivers/amd/aql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t count = size / 4;
    uint32_t *words = malloc(count * 4 + 1);
    struct bw_text text = {0};
    if (!words)
        return 0;
    if (count)
        memcpy(words, data, count * 4);
    uint64_t problems = bw_amd_aql_print(words, count, &text);
    if (problems > (count + BW_AMD_AQL_WORDS - 1) / BW_AMD_AQL_WORDS || (count && text.length == 0))
        abort();
    bw_text_free(&text);
    free(words);
    return 0;
}
