#include "drivers/amd/firmware.h"

#include <errno.h>
#include <stddef.h>

#include "base/bits.h"

static const char subsystem[] = "firmware";

/* struct common_firmware_header */
enum {
    FILE_SIZE = 0,
    HEADER_SIZE = 4,
    HEADER_MAJOR = 8,
    HEADER_MINOR = 10,
    IP_MAJOR = 12,
    IP_MINOR = 14,
    VERSION = 16,
    CODE_SIZE = 20,
    CODE_OFFSET = 24,
    CRC = 28,
    COMMON_BYTES = 32,
};

/* struct psp_firmware_header_v2_0: parts of 16 bytes each; version 2.1 says before them where those for other
 * steppings begin. */
enum { SOS_COUNT = 32, SOS_AUXILIARY = 36, SOS_PARTS = 36, SOS_PARTS_V1 = 40, SOS_PART_BYTES = 16 };

/* struct smc_firmware_header_v2_1 and smc_soft_pptable_entry. */
enum { SMU_TABLE_COUNT = 36, SMU_TABLES = 40, SMU_TABLE_BYTES = 12, SMU_P2S = 0x503253 };

/* struct gfx_firmware_header_v2_0. */
enum { RS64_HEADER_BYTES = 60, RS64_START_LO = 52, RS64_START_HI = 56 };

static uint32_t get(const uint8_t *data, uint32_t offset, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)data[offset + i] << 8 * i;
    return value;
}

/* CRC-32 as zlib and Ethernet have it, bit by bit: a file is read once. */
static uint32_t crc32_of(const uint8_t *data, uint64_t size_bytes)
{
    uint32_t crc = UINT32_MAX;
    for (uint64_t i = 0; i < size_bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

enum place_how {
    PLACE_END,    /* of a list */
    PLACE_WHOLE,  /* offset_at and size_at are where the header says them, in bytes of the file */
    PLACE_CODE,   /* begins where the code does; size_at says how long it is */
    PLACE_NEXT,   /* begins where the one before ends */
    PLACE_BEFORE, /* of the code what lies before its jump table, which the header gives in words, */
    PLACE_JUMPS,  /* and that */
};

/* A part, by where words of the header are. */
struct place {
    uint8_t how; /* enum place_how */
    uint8_t type, version_at, offset_at, size_at;
};

enum { PLACES_MAX = 9 };

/* A kind's header, from that version of the same major number on. */
struct layout {
    enum bw_amd_firmware_kind kind;
    uint16_t major, minor;
    uint16_t header_bytes;
    struct place places[PLACES_MAX];
};

#define WHOLE_CODE(type)                                   \
    {                                                      \
        PLACE_WHOLE, type, VERSION, CODE_OFFSET, CODE_SIZE \
    }
/* gfx_firmware_header_v2_0: code, and data with the stack. */
#define RS64_PARTS(code, stack)                 \
    {                                           \
        {PLACE_WHOLE, code, VERSION, 40, 36},   \
        {                                       \
            PLACE_WHOLE, stack, VERSION, 48, 44 \
        }                                       \
    }
/* rlc_firmware_header_v2_1 to v2_3: each adds to the one before; the code itself comes last. */
#define RLC_RESTORE                                                \
    {PLACE_WHOLE, BW_AMD_LOAD_RLC_RESTORE_CNTL, 108, 120, 116},    \
        {PLACE_WHOLE, BW_AMD_LOAD_RLC_RESTORE_GPM, 124, 136, 132}, \
    {                                                              \
        PLACE_WHOLE, BW_AMD_LOAD_RLC_RESTORE_SRM, 140, 152, 148    \
    }
#define RLC_MEMORIES                                         \
    {PLACE_WHOLE, BW_AMD_LOAD_RLC_IRAM, VERSION, 160, 156},  \
    {                                                        \
        PLACE_WHOLE, BW_AMD_LOAD_RLC_DRAM, VERSION, 168, 164 \
    }

/* The newest of a kind first. */
static const struct layout layouts[] = {
    {BW_AMD_FIRMWARE_SMU, 2, 1, 44, {WHOLE_CODE(BW_AMD_LOAD_SMU)}},
    {BW_AMD_FIRMWARE_SMU, 2, 0, 44, {WHOLE_CODE(BW_AMD_LOAD_SMU)}}, /* smc_firmware_header */
    {BW_AMD_FIRMWARE_SMU, 1, 0, 36, {WHOLE_CODE(BW_AMD_LOAD_SMU)}},
    {BW_AMD_FIRMWARE_SDMA, 3, 0, 44, {{PLACE_WHOLE, BW_AMD_LOAD_SDMA_CONTEXT, VERSION, 36, 40}}},
    {BW_AMD_FIRMWARE_SDMA,
     2,
     0,
     64,
     {{PLACE_WHOLE, BW_AMD_LOAD_SDMA_CONTROL, VERSION, 48, 52},
      {PLACE_CODE, BW_AMD_LOAD_SDMA_CONTEXT, VERSION, 0, 36}}},
    {BW_AMD_FIRMWARE_SDMA, 1, 0, 48, {WHOLE_CODE(BW_AMD_LOAD_SDMA)}},
    {BW_AMD_FIRMWARE_PFP, 2, 0, 60, RS64_PARTS(BW_AMD_LOAD_RS64_PFP, BW_AMD_LOAD_RS64_PFP_STACK)},
    {BW_AMD_FIRMWARE_ME, 2, 0, 60, RS64_PARTS(BW_AMD_LOAD_RS64_ME, BW_AMD_LOAD_RS64_ME_STACK)},
    {BW_AMD_FIRMWARE_MEC, 2, 0, 60, RS64_PARTS(BW_AMD_LOAD_RS64_MEC, BW_AMD_LOAD_RS64_MEC_STACK)},
    {BW_AMD_FIRMWARE_PFP, 1, 0, 44, {WHOLE_CODE(BW_AMD_LOAD_PFP)}}, /* gfx_firmware_header_v1_0 */
    {BW_AMD_FIRMWARE_ME, 1, 0, 44, {WHOLE_CODE(BW_AMD_LOAD_ME)}},
    {BW_AMD_FIRMWARE_MEC,
     1,
     0,
     44,
     {{PLACE_BEFORE, BW_AMD_LOAD_MEC, VERSION, 36, 40},
      {PLACE_JUMPS, BW_AMD_LOAD_MEC_JUMPS, VERSION, 36, 40}}},
    {BW_AMD_FIRMWARE_IMU, /* imu_firmware_header_v1_0 */
     1,
     0,
     48,
     {{PLACE_CODE, BW_AMD_LOAD_IMU_IRAM, VERSION, 0, 32},
      {PLACE_NEXT, BW_AMD_LOAD_IMU_DRAM, VERSION, 0, 40}}},
    {BW_AMD_FIRMWARE_RLC,
     2,
     3,
     204,
     {RLC_RESTORE,
      RLC_MEMORIES,
      {PLACE_WHOLE, BW_AMD_LOAD_RLC_P, 172, 184, 180},
      {PLACE_WHOLE, BW_AMD_LOAD_RLC_V, 188, 200, 196},
      WHOLE_CODE(BW_AMD_LOAD_RLC_G)}},
    {BW_AMD_FIRMWARE_RLC, 2, 2, 172, {RLC_RESTORE, RLC_MEMORIES, WHOLE_CODE(BW_AMD_LOAD_RLC_G)}},
    {BW_AMD_FIRMWARE_RLC, 2, 1, 156, {RLC_RESTORE, WHOLE_CODE(BW_AMD_LOAD_RLC_G)}},
    {BW_AMD_FIRMWARE_RLC, 2, 0, 104, {WHOLE_CODE(BW_AMD_LOAD_RLC_G)}},
};

/* A file, and what is made of it. */
struct reader {
    const uint8_t *data;
    uint64_t size_bytes;
    struct bw_amd_firmware *firmware;
    struct bw_err *err;
};

static int part_add(struct reader *reader, struct bw_amd_firmware_part part, uint64_t offset)
{
    struct bw_amd_firmware *firmware = reader->firmware;
    if (!part.size_bytes) /* files without it have it empty */
        return 0;
    if (offset > reader->size_bytes || part.size_bytes > reader->size_bytes - offset)
        return bw_fail(reader->err, -EPROTO, subsystem, "part 0x%x: %u bytes at offset %llu of %llu",
                       part.type, part.size_bytes, (unsigned long long)offset,
                       (unsigned long long)reader->size_bytes);
    if (firmware->part_count == BW_AMD_FIRMWARE_PARTS_MAX)
        return bw_fail(reader->err, -EPROTO, subsystem, "more than %d parts", BW_AMD_FIRMWARE_PARTS_MAX);
    part.offset = (uint32_t)offset;
    firmware->parts[firmware->part_count++] = part;
    return 0;
}

/* *end: where the part before ended; of this one then. */
static int place_read(struct reader *reader, const struct place *place, uint64_t *end)
{
    const uint8_t *data = reader->data;
    uint64_t code = get(data, CODE_OFFSET, 4), code_bytes = get(data, CODE_SIZE, 4);
    uint64_t offset = place->offset_at ? get(data, place->offset_at, 4) : 0,
             bytes = get(data, place->size_at, 4);
    if (place->how == PLACE_BEFORE || place->how == PLACE_JUMPS) {
        offset *= sizeof(uint32_t);
        bytes *= sizeof(uint32_t);
        if (offset > code_bytes || bytes > code_bytes - offset)
            return bw_fail(reader->err, -EPROTO, subsystem, "jump table: %llu bytes at %llu of %llu of code",
                           (unsigned long long)bytes, (unsigned long long)offset,
                           (unsigned long long)code_bytes);
        bytes = place->how == PLACE_BEFORE ? code_bytes - bytes : bytes;
        offset = place->how == PLACE_BEFORE ? code : code + offset;
    } else if (place->how == PLACE_CODE) {
        offset = code;
    } else if (place->how == PLACE_NEXT) {
        offset = *end;
    }
    *end = offset + bytes;
    return part_add(reader,
                    (struct bw_amd_firmware_part){.type = place->type,
                                                  .version = get(data, place->version_at, 4),
                                                  .size_bytes = (uint32_t)bytes},
                    offset);
}

/* Parts with types of their own, counted; from some index on for other steppings of the chip. */
static int sos_read(struct reader *reader)
{
    const uint8_t *data = reader->data;
    bool auxiliary = reader->firmware->header_minor >= 1;
    uint32_t at = auxiliary ? SOS_PARTS_V1 : SOS_PARTS;
    if (reader->size_bytes < at)
        return bw_fail(reader->err, -EPROTO, subsystem, "%llu bytes, the header alone has %u",
                       (unsigned long long)reader->size_bytes, at);
    uint32_t count = get(data, SOS_COUNT, 4), first = auxiliary ? get(data, SOS_AUXILIARY, 4) : 0;
    uint64_t code = get(data, CODE_OFFSET, 4);
    if (count > BW_AMD_FIRMWARE_PARTS_MAX || (uint64_t)count * SOS_PART_BYTES > reader->size_bytes - at)
        return bw_fail(reader->err, -EPROTO, subsystem, "%u parts", count);
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++, at += SOS_PART_BYTES)
        rc = part_add(reader,
                      (struct bw_amd_firmware_part){.type = get(data, at, 4),
                                                    .version = get(data, at + 4, 4),
                                                    .auxiliary = first && i >= first,
                                                    .size_bytes = get(data, at + 12, 4)},
                      code + get(data, at + 8, 4));
    return rc;
}

/* smc_firmware_header_v2_1: tables, each with an id. Those of the power-play kind are for drivers that set
 * clocks by themselves. */
static int smu_tables_read(struct reader *reader)
{
    const uint8_t *data = reader->data;
    uint32_t count = get(data, SMU_TABLE_COUNT, 4);
    uint64_t at = get(data, SMU_TABLES, 4);
    if (at > reader->size_bytes || (uint64_t)count * SMU_TABLE_BYTES > reader->size_bytes - at)
        return bw_fail(reader->err, -EPROTO, subsystem, "%u tables at offset %llu of %llu", count,
                       (unsigned long long)at, (unsigned long long)reader->size_bytes);
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++, at += SMU_TABLE_BYTES) {
        const uint8_t *table = data + at;
        if (get(table, 0, 4) >> 8 == SMU_P2S)
            rc = part_add(reader,
                          (struct bw_amd_firmware_part){.type = BW_AMD_LOAD_P2S_TABLE,
                                                        .version = get(data, VERSION, 4),
                                                        .size_bytes = get(table, 8, 4),
                                                        .id = get(table, 0, 4)},
                          get(table, 4, 4));
    }
    return rc;
}

static int layout_read(struct reader *reader, const struct layout *layout)
{
    uint64_t end = 0;
    int rc = 0;
    for (int i = 0; i < PLACES_MAX && layout->places[i].how != PLACE_END && !rc; i++)
        rc = place_read(reader, &layout->places[i], &end);
    if (!rc && layout->kind == BW_AMD_FIRMWARE_SMU && layout->minor >= 1)
        rc = smu_tables_read(reader);
    if (rc || layout->header_bytes != RS64_HEADER_BYTES)
        return rc;
    reader->firmware->has_start = true;
    reader->firmware->start_va =
        get(reader->data, RS64_START_LO, 4) | (uint64_t)get(reader->data, RS64_START_HI, 4) << 32;
    return 0;
}

static int header_check(struct reader *reader)
{
    const uint8_t *data = reader->data;
    if (reader->size_bytes < COMMON_BYTES)
        return bw_fail(reader->err, -EPROTO, subsystem, "%llu bytes", (unsigned long long)reader->size_bytes);
    uint32_t said = get(data, FILE_SIZE, 4), header_bytes = get(data, HEADER_SIZE, 4);
    if (said != reader->size_bytes) {
        bw_fail(reader->err, -EPROTO, subsystem, "size of the file");
        bw_err_expected(reader->err, "%u bytes", said);
        bw_err_observed(reader->err, "%llu bytes", (unsigned long long)reader->size_bytes);
        bw_err_hint(reader->err, "cut, or another file");
        return -EPROTO;
    }
    if (header_bytes < COMMON_BYTES || header_bytes > reader->size_bytes)
        return bw_fail(reader->err, -EPROTO, subsystem, "header of %u bytes", header_bytes);
    return 0;
}

static int unknown_version(const struct reader *reader)
{
    return bw_fail(reader->err, -ENOTSUP, subsystem,
                   "header version %u.%u is not known for this kind of file", reader->firmware->header_major,
                   reader->firmware->header_minor);
}

static int parts_read(struct reader *reader, enum bw_amd_firmware_kind kind)
{
    const struct bw_amd_firmware *firmware = reader->firmware;
    if (kind == BW_AMD_FIRMWARE_SOS)
        return firmware->header_major == 2 ? sos_read(reader) : unknown_version(reader);
    for (size_t i = 0; i < BW_COUNT_OF(layouts); i++) {
        const struct layout *layout = &layouts[i];
        if (layout->kind != kind || layout->major != firmware->header_major ||
            layout->minor > firmware->header_minor)
            continue;
        /* Some of AMD's files say less of their header than it has: what counts is what is there. */
        return reader->size_bytes < layout->header_bytes
                   ? bw_fail(reader->err, -EPROTO, subsystem, "%llu bytes, the header alone has %u",
                             (unsigned long long)reader->size_bytes, layout->header_bytes)
                   : layout_read(reader, layout);
    }
    return unknown_version(reader);
}

int bw_amd_firmware_parse(enum bw_amd_firmware_kind kind, const void *data, uint64_t size_bytes,
                          struct bw_amd_firmware *firmware, struct bw_err *err)
{
    struct reader reader = {data, size_bytes, firmware, err};
    *firmware = (struct bw_amd_firmware){0};
    int rc = header_check(&reader);
    if (rc)
        return rc;
    const uint8_t *bytes = data;
    *firmware = (struct bw_amd_firmware){
        .header_major = (uint16_t)get(bytes, HEADER_MAJOR, 2),
        .header_minor = (uint16_t)get(bytes, HEADER_MINOR, 2),
        .ip_major = (uint16_t)get(bytes, IP_MAJOR, 2),
        .ip_minor = (uint16_t)get(bytes, IP_MINOR, 2),
        .version = get(bytes, VERSION, 4),
        .crc_matches = crc32_of(bytes + COMMON_BYTES, size_bytes - COMMON_BYTES) == get(bytes, CRC, 4),
    };
    return parts_read(&reader, kind);
}

const struct bw_amd_firmware_part *bw_amd_firmware_find(const struct bw_amd_firmware *firmware, uint32_t type)
{
    for (uint32_t i = 0; i < firmware->part_count; i++) {
        if (firmware->parts[i].type == type && !firmware->parts[i].auxiliary)
            return &firmware->parts[i];
    }
    return NULL;
}
