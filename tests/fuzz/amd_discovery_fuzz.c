/* Any bytes as a discovery table; sums are made right first, so that what lies behind them is reached. */
#include <stdlib.h>
#include <string.h>

#include "drivers/amd/discovery.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static uint32_t get16(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8;
}

static uint32_t sum(const uint8_t *at, size_t size)
{
    uint32_t total = 0;
    while (size--)
        total += *at++;
    return total;
}

enum { SIZE_AT = 10, TABLES_AT = 12, TABLES = 3, ROW = 8, LONGEST_HEADER = 12 };

/* Tables say their size in different places: whichever it is, the sum is one of these. */
static void sums_mend(uint8_t *table, size_t size)
{
    static const uint8_t size_at[TABLES] = {6, 8, 0};
    put16(table + SIZE_AT, (uint32_t)size);
    for (uint32_t i = 0; i < TABLES; i++) {
        uint8_t *row = table + TABLES_AT + i * ROW;
        size_t at = get16(row);
        if (at + LONGEST_HEADER > size)
            continue;
        size_t bytes = size_at[i] ? get16(table + at + size_at[i]) : 136;
        if (bytes <= size - at)
            put16(row + 2, sum(table + at, bytes));
    }
    put16(table + SIZE_AT - 2, sum(table + SIZE_AT, size - SIZE_AT));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bw_amd_discovery discovery;
    uint8_t *copy = malloc(size + 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (size > TABLES_AT + TABLES * ROW && size <= UINT16_MAX && data[size - 1] & 1)
        sums_mend(copy, size);
    (void)bw_amd_discovery_parse(copy, size, &discovery, NULL);
    bw_amd_discovery_free(&discovery);
    free(copy);
    return 0;
}
