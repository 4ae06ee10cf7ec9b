#include "drivers/amd/discovery.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"

static const char subsystem[] = "discovery";

#define BINARY_SIGNATURE  0x28211407u
#define IP_SIGNATURE      0x53445049u /* "IPDS" */
#define GC_SIGNATURE      0x4347u     /* "GC" */
#define HARVEST_SIGNATURE 0x56524148u /* "HARV" */

/* struct binary_header: sums and sizes of 16 bits, then a row for each table. */
enum {
    BINARY_VERSION = 4,
    BINARY_CHECKSUM = 8, /* byte sum of all after it */
    BINARY_SIZE = 10,
    BINARY_TABLES = 12,    /* version 1 */
    BINARY_TABLES_V2 = 16, /* their number stands before */
    BINARY_TABLE_COUNT_V2 = 12,
    BINARY_TABLE_COUNT_V1 = 6,
    TABLE_ROW_BYTES = 8, /* offset, checksum, size, padding */
};

enum table { TABLE_IP, TABLE_GC, TABLE_HARVEST };

/* struct ip_discovery_header, die_header and the three versions of struct ip. */
enum {
    IP_VERSION = 4,
    IP_SIZE = 6,
    IP_DIE_COUNT = 12,
    IP_DIES = 14,  /* id and offset in the binary, 2 bytes each, for 16 dies */
    IP_FLAGS = 78, /* version 4: bit 0: bases have 64 bits */
    IP_HEADER_BYTES = 80,
    IP_VERSION_MAX = 4,
    DIE_IP_COUNT = 2,
    DIE_HEADER_BYTES = 4,
    IP_BYTES = 8,
    IP_HARVEST_MASK = 0xf, /* versions 1 and 2, of the last byte */
    IP_HARVEST_VERSION_LAST = 2,
};

/* struct gpu_info_header, and struct gc_info's words after it, the same up to a number of them. */
enum {
    GC_VERSION_MAJOR = 4,
    GC_VERSION_MINOR = 6,
    GC_SIZE = 8,
    GC_HEADER_BYTES = 12,
    GC_ENGINES = 12,
    GC_UNITS_0 = 16, /* version 1: WGPs of the first half, and of the second; version 2: CUs, arrays */
    GC_UNITS_1 = 20,
    GC_WAVE_SIZE = 56,
    GC_WAVES = 60,
    GC_SCRATCH_SLOTS = 64,
    GC_LDS = 68,
    GC_ARRAYS_V1 = 76,
    GC_BYTES_MIN = 80,
    GC_UNITS_PER_WGP = 2,
};

enum { HARVEST_LIST = 8, HARVEST_COUNT = 32, HARVEST_BYTES = HARVEST_LIST + HARVEST_COUNT * 4 };

/* Bytes that were checked to be there. */
struct span {
    const uint8_t *at;
    uint64_t size_bytes;
};

static uint32_t get(const struct span *span, uint64_t offset, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)span->at[offset + i] << 8 * i;
    return value;
}

static bool has(const struct span *span, uint64_t offset, uint64_t size_bytes)
{
    return offset <= span->size_bytes && size_bytes <= span->size_bytes - offset;
}

static int cut_off(struct bw_err *err, const char *what, uint64_t offset, uint64_t size_bytes)
{
    return bw_fail(err, -EPROTO, subsystem, "%s: %llu bytes at offset %llu are not in the table", what,
                   (unsigned long long)size_bytes, (unsigned long long)offset);
}

static int expect(struct bw_err *err, const char *what, uint32_t observed, uint32_t expected)
{
    if (observed == expected)
        return 0;
    bw_fail(err, -EPROTO, subsystem, "%s", what);
    bw_err_expected(err, "0x%x", expected);
    bw_err_observed(err, "0x%x", observed);
    return -EPROTO;
}

static uint16_t byte_sum(const struct span *span, uint64_t offset, uint64_t size_bytes)
{
    uint32_t sum = 0;
    for (uint64_t i = 0; i < size_bytes; i++)
        sum += span->at[offset + i];
    return (uint16_t)sum;
}

static bool all_ones(const struct span *span)
{
    uint64_t ones = 0;
    while (ones < span->size_bytes && span->at[ones] == 0xff)
        ones++;
    return ones == span->size_bytes;
}

/* The span shrinks to what the table says that it measures. */
static int binary_check(struct span *binary, struct bw_amd_discovery *discovery, struct bw_err *err)
{
    if (binary->size_bytes < BINARY_TABLES_V2)
        return cut_off(err, "header", 0, BINARY_TABLES_V2);
    if (all_ones(binary)) {
        bw_fail(err, -ENXIO, subsystem, "the end of VRAM reads all ones");
        bw_err_hint(
            err, "a virtual function without its memory, decoding turned off, or a device that left the bus");
        return -ENXIO;
    }
    int rc = expect(err, "signature", get(binary, 0, 4), BINARY_SIGNATURE);
    if (rc)
        return rc;
    uint32_t size_bytes = get(binary, BINARY_SIZE, 2);
    if (size_bytes < BINARY_TABLES_V2 || size_bytes > binary->size_bytes)
        return cut_off(err, "all of it", 0, size_bytes);
    binary->size_bytes = size_bytes;
    discovery->version_major = (uint16_t)get(binary, BINARY_VERSION, 2);
    discovery->version_minor = (uint16_t)get(binary, BINARY_VERSION + 2, 2);
    return expect(err, "checksum", byte_sum(binary, BINARY_SIZE, size_bytes - BINARY_SIZE),
                  get(binary, BINARY_CHECKSUM, 2));
}

/* Where a table of the binary is; *offset 0: there is none. */
static int table_find(const struct span *binary, uint32_t version_major, enum table table, uint64_t *offset,
                      uint32_t *checksum, struct bw_err *err)
{
    bool second = version_major >= 2;
    uint32_t count = second ? get(binary, BINARY_TABLE_COUNT_V2, 2) : BINARY_TABLE_COUNT_V1;
    uint64_t row = (second ? BINARY_TABLES_V2 : BINARY_TABLES) + (uint64_t)table * TABLE_ROW_BYTES;
    *offset = 0;
    if ((uint32_t)table >= count)
        return 0;
    if (!has(binary, row, TABLE_ROW_BYTES))
        return cut_off(err, "list of tables", row, TABLE_ROW_BYTES);
    *offset = get(binary, row, 2);
    *checksum = get(binary, row + 2, 2);
    return 0;
}

/* A table's own bytes, summed. header_bytes: to be there before its size is looked at; fixed_bytes: its size,
 * or 0 where it stands in size_width bytes at size_at. */
struct form {
    const char *name;
    uint32_t signature;
    uint32_t header_bytes, size_at, size_width, fixed_bytes;
};

static int table_open(const struct span *binary, const struct bw_amd_discovery *discovery, enum table table,
                      const struct form *form, struct span *opened, struct bw_err *err)
{
    uint64_t offset;
    uint32_t checksum;
    *opened = (struct span){0};
    int rc = table_find(binary, discovery->version_major, table, &offset, &checksum, err);
    if (rc || !offset)
        return rc;
    if (!has(binary, offset, form->header_bytes))
        return cut_off(err, form->name, offset, form->header_bytes);
    struct span all = {binary->at + offset, binary->size_bytes - offset};
    rc = expect(err, form->name, get(&all, 0, 4), form->signature);
    if (rc)
        return rc;
    uint32_t size_bytes = form->fixed_bytes ? form->fixed_bytes : get(&all, form->size_at, form->size_width);
    if (size_bytes < form->header_bytes || size_bytes > all.size_bytes)
        return cut_off(err, form->name, offset, size_bytes);
    rc = expect(err, form->name, byte_sum(&all, 0, size_bytes), checksum);
    if (rc)
        bw_err_hint(err, "checksum of that table");
    else
        *opened = (struct span){all.at, size_bytes};
    return rc;
}

/* One struct ip at *offset of the binary, which moves on behind it. */
static int ip_read(const struct span *binary, uint64_t *offset, uint32_t version, bool wide,
                   struct bw_amd_ip *ip, struct bw_err *err)
{
    if (!has(binary, *offset, IP_BYTES))
        return cut_off(err, "IP block", *offset, IP_BYTES);
    *ip = (struct bw_amd_ip){.hw_id = (uint16_t)get(binary, *offset, 2),
                             .instance = binary->at[*offset + 2],
                             .base_count = binary->at[*offset + 3],
                             .major = binary->at[*offset + 4],
                             .minor = binary->at[*offset + 5],
                             .revision = binary->at[*offset + 6],
                             .harvested = version <= IP_HARVEST_VERSION_LAST &&
                                          binary->at[*offset + 7] & IP_HARVEST_MASK};
    uint32_t base_bytes = wide ? 8 : 4;
    uint64_t bases = *offset + IP_BYTES, all_bytes = (uint64_t)ip->base_count * base_bytes;
    if (!has(binary, bases, all_bytes))
        return cut_off(err, "base addresses", bases, all_bytes);
    *offset = bases + all_bytes;
    if (ip->base_count > BW_AMD_IP_BASES_MAX)
        ip->base_count = BW_AMD_IP_BASES_MAX;
    for (uint32_t i = 0; i < ip->base_count; i++, bases += base_bytes)
        ip->bases[i] = get(binary, bases, 4) | (wide ? (uint64_t)get(binary, bases + 4, 4) << 32 : 0);
    return 0;
}

static int die_read(const struct span *binary, struct bw_amd_discovery *discovery, uint64_t offset,
                    uint32_t version, bool wide, struct bw_err *err)
{
    if (!has(binary, offset, DIE_HEADER_BYTES))
        return cut_off(err, "die", offset, DIE_HEADER_BYTES);
    int rc = expect(err, "number of a die", get(binary, offset, 2), discovery->die_count);
    uint32_t count = get(binary, offset + DIE_IP_COUNT, 2);
    offset += DIE_HEADER_BYTES;
    for (uint32_t i = 0; i < count && !rc; i++) {
        struct bw_amd_ip ip;
        rc = ip_read(binary, &offset, version, wide, &ip, err);
        ip.die = (uint8_t)discovery->die_count;
        if (!rc && bw_vec_push(&discovery->ips, ip))
            rc = bw_fail(err, -ENOMEM, subsystem, "%u IP blocks", count);
    }
    discovery->die_count++;
    return rc;
}

static int ips_read(const struct span *binary, struct bw_amd_discovery *discovery, struct bw_err *err)
{
    static const struct form form = {"IP blocks", IP_SIGNATURE, IP_HEADER_BYTES, IP_SIZE, 2, 0};
    struct span table;
    int rc = table_open(binary, discovery, TABLE_IP, &form, &table, err);
    if (rc)
        return rc;
    if (!table.size_bytes)
        return bw_fail(err, -EPROTO, subsystem, "no table of IP blocks");
    uint32_t version = get(&table, IP_VERSION, 2), dies = get(&table, IP_DIE_COUNT, 2);
    if (version < 1 || version > IP_VERSION_MAX)
        return bw_fail(err, -EPROTO, subsystem, "version %u of the table of IP blocks, known are 1 to %d",
                       version, IP_VERSION_MAX);
    if (!dies || dies > BW_AMD_DISCOVERY_DIES_MAX)
        return bw_fail(err, -EPROTO, subsystem, "%u dies, at most %d", dies, BW_AMD_DISCOVERY_DIES_MAX);
    bool wide = version >= 4 && get(&table, IP_FLAGS, 1) & 1;
    for (uint32_t i = 0; i < dies && !rc; i++)
        rc = die_read(binary, discovery, get(&table, IP_DIES + i * 4 + 2, 2), version, wide, err);
    return rc;
}

/* Blocks that the table of blocks does not know to be fused off. */
static int harvest_read(const struct span *binary, struct bw_amd_discovery *discovery, struct bw_err *err)
{
    static const struct form form = {"harvest", HARVEST_SIGNATURE, HARVEST_BYTES, 0, 0, HARVEST_BYTES};
    struct span table;
    int rc = table_open(binary, discovery, TABLE_HARVEST, &form, &table, err);
    for (uint32_t i = 0; !rc && table.size_bytes && i < HARVEST_COUNT; i++) {
        uint32_t hw_id = get(&table, HARVEST_LIST + i * 4, 2),
                 instance = get(&table, HARVEST_LIST + i * 4 + 2, 1);
        if (!hw_id)
            break;
        for (size_t k = 0; k < discovery->ips.count; k++) {
            struct bw_amd_ip *ip = &discovery->ips.data[k];
            ip->harvested |= ip->hw_id == hw_id && ip->instance == instance;
        }
    }
    return rc;
}

static int shape_read(const struct span *binary, struct bw_amd_discovery *discovery, struct bw_err *err)
{
    static const struct form form = {"graphics core", GC_SIGNATURE, GC_BYTES_MIN, GC_SIZE, 4, 0};
    struct span table;
    int rc = table_open(binary, discovery, TABLE_GC, &form, &table, err);
    if (rc || !table.size_bytes)
        return rc;
    discovery->has_shape = true;
    uint32_t major = get(&table, GC_VERSION_MAJOR, 2);
    if (major != 1 && major != 2)
        return bw_fail(err, -EPROTO, subsystem,
                       "version %u of the table of the graphics core, known are 1 and 2", major);
    uint32_t first = get(&table, GC_UNITS_0, 4), second = get(&table, GC_UNITS_1, 4);
    discovery->shape = (struct bw_amd_core_shape){
        .shader_engines = get(&table, GC_ENGINES, 4),
        .arrays_per_engine = major == 1 ? get(&table, GC_ARRAYS_V1, 4) : second,
        .units_per_array = major == 1 ? GC_UNITS_PER_WGP * (first + second) : first,
        .wave_size = get(&table, GC_WAVE_SIZE, 4),
        .waves_per_simd = get(&table, GC_WAVES, 4),
        .scratch_slots_per_unit = get(&table, GC_SCRATCH_SLOTS, 4),
        .lds_kib = get(&table, GC_LDS, 4),
    };
    const struct bw_amd_core_shape *shape = &discovery->shape;
    if (!shape->shader_engines || !shape->arrays_per_engine || !shape->units_per_array)
        return bw_fail(err, -EPROTO, subsystem, "graphics core of %u engines, %u arrays each, %u units each",
                       shape->shader_engines, shape->arrays_per_engine, shape->units_per_array);
    return 0;
}

int bw_amd_discovery_parse(const void *table, uint64_t size_bytes, struct bw_amd_discovery *discovery,
                           struct bw_err *err)
{
    struct span binary = {table, size_bytes};
    *discovery = (struct bw_amd_discovery){0};
    int rc = binary_check(&binary, discovery, err);
    if (!rc)
        rc = ips_read(&binary, discovery, err);
    if (!rc)
        rc = harvest_read(&binary, discovery, err);
    if (!rc)
        rc = shape_read(&binary, discovery, err);
    return rc;
}

void bw_amd_discovery_free(struct bw_amd_discovery *discovery)
{
    bw_vec_free(&discovery->ips);
}

const struct bw_amd_ip *bw_amd_discovery_find(const struct bw_amd_discovery *discovery, uint16_t hw_id,
                                              uint32_t nth)
{
    for (size_t i = 0; i < discovery->ips.count; i++) {
        const struct bw_amd_ip *ip = &discovery->ips.data[i];
        if (ip->hw_id == hw_id && !ip->harvested && nth-- == 0)
            return ip;
    }
    return NULL;
}
