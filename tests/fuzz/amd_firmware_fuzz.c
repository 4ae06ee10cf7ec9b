/* Any bytes as a firmware file of every kind; the size that it says is made right, so that what lies behind
 * is reached. No part lies outside. */
#include <stdlib.h>
#include <string.h>

#include "drivers/amd/firmware.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    for (size_t i = 0; i < 4 && size >= 4; i++)
        copy[i] = (uint8_t)(size >> 8 * i);
    for (int kind = 0; kind < BW_AMD_FIRMWARE_KINDS; kind++) {
        struct bw_amd_firmware firmware;
        (void)bw_amd_firmware_parse((enum bw_amd_firmware_kind)kind, copy, size, &firmware, NULL);
        for (uint32_t i = 0; i < firmware.part_count; i++) {
            if ((uint64_t)firmware.parts[i].offset + firmware.parts[i].size_bytes > size)
                abort();
        }
    }
    free(copy);
    return 0;
}
