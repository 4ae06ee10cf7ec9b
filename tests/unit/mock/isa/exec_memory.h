/* One memory operation at a time against a plain C reference: a wave with a block of operands for each lane,
 * an image of memory that the operation reads and changes, and what section 16 of the RDNA3 ISA document says
 * of each element operation, written here once more. */
#ifndef BW_TESTS_EXEC_MEMORY_H
#define BW_TESTS_EXEC_MEMORY_H

#include "base/rng.h"
#include "base/text.h"
#include "mock/isa/inst.h"
#include "mock/isa/pool.h"
#include "tests/unit/mock/isa/exec_proof.h"
#include "tests/unit/mock/isa/exec_run.h"

enum {
    MEM_LANES = 64,
    MEM_IMAGE_BYTES = 2304, /* of which LDS has the first ... */
    MEM_LDS_BYTES = 2040,   /* ... so many: no multiple of anything that an element has */
    MEM_IMAGE_AT = EXEC_DATA + 0x10000,
    MEM_GUARD_BYTES = 0x4000, /* around the image: nothing else may change */
};

/* What a lane loads before the operation and stores after it. */
struct mem_lane {
    uint32_t address[4]; /* v[1:4] */
    uint32_t data[4];    /* v[5:8] */
    uint32_t data2[4];   /* v[9:12] */
    uint32_t old[4];     /* v[13:16] */
    uint32_t result[4];  /* v[13:16] afterwards */
    uint32_t data_after[4];
    uint32_t unused[8];
};
_Static_assert(sizeof(struct mem_lane) == 128, "the prologue shifts by 7");
enum { MEM_V_ADDRESS = 1, MEM_V_DATA = 5, MEM_V_DATA2 = 9, MEM_V_OLD = 13 };

/* s[16:31]. */
struct mem_arguments {
    uint64_t lanes, image, exec;
    uint32_t m0, soffset, descriptor[4];
    uint64_t saddr;
    uint32_t soffset32, unused;
};
_Static_assert(sizeof(struct mem_arguments) == 64, "one s_load_b512");
enum { MEM_S_SOFFSET = 23, MEM_S_DESCRIPTOR = 24, MEM_S_ADDRESS = 28, MEM_S_OFFSET32 = 30 };

struct mem_rig {
    struct exec_machine machine;
    struct mem_lane *lanes;
    struct mem_arguments *arguments;
    uint8_t *image; /* in the machine's memory */
    unsigned wave_size;
    bool in_lds;       /* the image is copied into LDS and back */
    uint32_t denormal; /* MODE.fp_denorm */
    uint64_t
        piece_bytes; /* data memory is mapped in pieces of so many, as if each were a mapping; 0: whole */
    struct bw_rng rng;
};

/* exec_machine's memory, the data in pieces that lie next to each other by chance. */
static inline void *mem_resolve(void *user, uint64_t va, enum bw_isa_access access, uint64_t *start,
                                uint64_t *bytes)
{
    struct mem_rig *rig = user;
    void *host = exec_resolve(&rig->machine, va, access, start, bytes);
    if (host && rig->piece_bytes && va >= EXEC_BASE + EXEC_DATA) {
        *start = va / rig->piece_bytes * rig->piece_bytes;
        *bytes = *start + rig->piece_bytes - va;
    }
    return host;
}

static inline bool mem_open(struct mem_rig *rig, int level, uint64_t seed)
{
    memset(rig, 0, sizeof *rig);
    if (exec_machine_init(&rig->machine, 1))
        return false;
    bw_isa_pool_destroy(rig->machine.pool);
    rig->machine.pool = NULL;
    rig->lanes = (struct mem_lane *)(void *)(rig->machine.memory + EXEC_DATA);
    rig->arguments = (struct mem_arguments *)(void *)(rig->machine.memory + EXEC_ARGS);
    rig->image = rig->machine.memory + MEM_IMAGE_AT;
    rig->wave_size = 32;
    rig->denormal = 0xf;
    rig->machine.dispatch.memory.resolve = mem_resolve;
    rig->machine.dispatch.memory.user = rig;
    rig->rng.state = seed;
    return bw_isa_pool_create_level(1, (enum bw_isa_level)level, &rig->machine.pool) == 0;
}

static inline void mem_close(struct mem_rig *rig)
{
    exec_machine_free(&rig->machine);
}

static inline unsigned mem_put(uint32_t *code, unsigned at, const uint32_t *words, unsigned count)
{
    memcpy(code + at, words, count * sizeof *words);
    return at + count;
}

/* The image between memory and LDS, a dword for each lane at a time. */
static inline unsigned mem_put_copies(uint32_t *code, unsigned at, bool to_lds)
{
    for (uint32_t offset = 0; offset < MEM_IMAGE_BYTES; offset += 128) {
        const uint32_t in[] = {
            0xdc520000 | offset, 0x16120015, /* global_load_b32 v22, v21, s[18:19] offset:o */
            0xbf8903f7,                      /* s_waitcnt vmcnt(0) */
            0xd8340000 | offset, 0x00001615, /* ds_store_b32 v21, v22 offset:o */
        };
        const uint32_t out[] = {
            0xd8d80000 | offset, 0x16000015, /* ds_load_b32 v22, v21 offset:o */
            0xbf89fc07,                      /* s_waitcnt lgkmcnt(0) */
            0xdc6a0000 | offset, 0x00121615, /* global_store_b32 v21, v22, s[18:19] offset:o */
        };
        at = mem_put(code, at, to_lds ? in : out, 5);
    }
    return at;
}

/* Runs the operation's words for one wave on what lies in lanes, image and arguments. */
static inline enum bw_isa_status mem_run(struct mem_rig *rig, const uint32_t *words, unsigned count)
{
    static const uint32_t prologue[] = {
        0xf4100400, 0xf8000000, /* s_load_b512 s[16:31], s[0:1], null */
        0x30280087,             /* v_lshlrev_b32_e32 v20, 7, v0 */
        0x302a0082,             /* v_lshlrev_b32_e32 v21, 2, v0 */
        0xbf89fc07,             /* s_waitcnt lgkmcnt(0) */
        0xdc5e0000, 0x01100014, /* global_load_b128 v[1:4], v20, s[16:17] */
        0xdc5e0010, 0x05100014, /* global_load_b128 v[5:8], v20, s[16:17] offset:16 */
        0xdc5e0020, 0x09100014, /* global_load_b128 v[9:12], v20, s[16:17] offset:32 */
        0xdc5e0030, 0x0d100014, /* global_load_b128 v[13:16], v20, s[16:17] offset:48 */
        0xbf8903f7,             /* s_waitcnt vmcnt(0) */
    };
    static const uint32_t before[] = {
        0xbefd0016, /* s_mov_b32 m0, s22 */
        0xbefe0114, /* s_mov_b64 exec, s[20:21] */
    };
    static const uint32_t after[] = {
        0xbefe01c1,             /* s_mov_b64 exec, -1 */
        0xbf890000,             /* s_waitcnt 0 */
        0xdc760040, 0x00100d14, /* global_store_b128 v20, v[13:16], s[16:17] offset:64 */
        0xdc760050, 0x00100514, /* global_store_b128 v20, v[5:8], s[16:17] offset:80 */
    };
    static const uint32_t end[] = {0xbfb00000 /* s_endpgm */};
    struct bw_isa_dispatch *dispatch = &rig->machine.dispatch;
    uint32_t code[512];
    unsigned at = mem_put(code, 0, prologue, sizeof prologue / 4);
    at = rig->in_lds ? mem_put_copies(code, at, true) : at;
    at = mem_put(code, at, before, sizeof before / 4);
    at = mem_put(code, at, words, count);
    at = mem_put(code, at, after, sizeof after / 4);
    at = rig->in_lds ? mem_put_copies(code, at, false) : at;
    at = mem_put(code, at, end, 1);
    memcpy(rig->machine.memory + EXEC_CODE, code, at * 4);
    rig->arguments->lanes = EXEC_BASE + EXEC_DATA;
    rig->arguments->image = EXEC_BASE + MEM_IMAGE_AT;
    dispatch->wave_size = dispatch->group_size[0] = rig->wave_size;
    dispatch->rsrc1 = (dispatch->rsrc1 & ~(0xfu << 16)) | rig->denormal << 16;
    dispatch->lds_bytes = rig->in_lds ? MEM_LDS_BYTES : 0;
    return exec_run(&rig->machine);
}

/* Encodings on those registers (RDNA3 ISA document, sections 15.2, 15.5, 15.7, 15.8). */
static inline void mem_encode_ds(uint32_t *words, unsigned op, uint32_t offset)
{
    words[0] = 0xd8000000u | (uint32_t)bw_gfx11_ops[op].opcode << 18 | offset;
    words[1] = (uint32_t)MEM_V_OLD << 24 | MEM_V_DATA2 << 16 | MEM_V_DATA << 8 | MEM_V_ADDRESS;
    if (bw_gfx11_ops[op].dst.type == BW_T_NONE)
        words[1] &= 0xffffff;
    if (bw_gfx11_ops[op].src[2].type == BW_T_NONE)
        words[1] &= 0xff00ffff;
    if (bw_gfx11_ops[op].src[1].type == BW_T_NONE)
        words[1] &= 0xffff00ff;
    if (bw_gfx11_ops[op].src[0].type == BW_T_NONE)
        words[1] &= 0xffffff00;
}

static inline uint64_t mem_wide(const uint32_t *words)
{
    return words[0] | (uint64_t)words[1] << 32;
}

static inline bool mem_is_active(const struct mem_rig *rig, unsigned lane)
{
    return rig->arguments->exec >> lane & 1;
}

/* All lanes, some, one, none. */
static inline uint64_t mem_exec(struct mem_rig *rig, unsigned round)
{
    uint64_t all = rig->wave_size == 64 ? ~0ull : 0xffffffffull;
    switch (round % 6) {
    case 3:
        return 1ull << bw_rng_below(&rig->rng, rig->wave_size);
    case 4:
        return 0;
    case 0:
    case 5:
        return all;
    default:
        return bw_rng_next(&rig->rng) & all;
    }
}

/* Says what differs; false then. */
static inline bool mem_differs(const struct mem_rig *rig, const uint32_t *words, unsigned count,
                               const char *what, uint64_t where, uint64_t expected, uint64_t observed)
{
    struct bw_text text = {0};
    bw_isa_disassemble(rig->machine.isa, words, count * 4, 0, &text);
    printf("\n    %s (wave%u, exec %llx, denormals %x): %s %llu: expected %llx, observed %llx",
           bw_text_string(&text), rig->wave_size, (unsigned long long)rig->arguments->exec, rig->denormal,
           what, (unsigned long long)where, (unsigned long long)expected, (unsigned long long)observed);
    bw_text_free(&text);
    return false;
}

/* Every lane has the expected result, and its data registers as they were before. */
static inline bool mem_lanes_are(const struct mem_rig *rig, const uint32_t *words,
                                 uint32_t expected[MEM_LANES][4], const struct mem_lane *before)
{
    for (unsigned lane = 0; lane < rig->wave_size; lane++) {
        const struct mem_lane *after = &rig->lanes[lane];
        for (unsigned i = 0; i < 4; i++) {
            if (after->result[i] != expected[lane][i])
                return mem_differs(rig, words, 2, i ? "lane, second dword or later" : "lane", lane,
                                   expected[lane][i], after->result[i]);
            if (after->data_after[i] != before[lane].data[i])
                return mem_differs(rig, words, 2, "data register of lane", lane, before[lane].data[i],
                                   after->data_after[i]);
        }
    }
    return true;
}

/* The levels of the host and both wave sizes. */
#define MEM_FOR_EACH_RIG(rig)                                                                           \
    for (int level_ = (int)bw_isa_host_level(); level_ >= BW_ISA_LEVEL_BASE; level_--)                  \
        for (unsigned pass_ = 0; pass_ < 2 && BW_TRUE(mem_open(&(rig), level_, 77 + (uint64_t)level_)); \
             pass_++, mem_close(&(rig)))                                                                \
            if ((rig).wave_size = 32 << pass_, true)

#endif
