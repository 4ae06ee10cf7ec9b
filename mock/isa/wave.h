/* The state of a wave and the pre-decoded operations ("uops") that act on it: what every execution file
 * shares.
 *
 * A wave is one block of memory: struct bw_wave, then its vector registers, then the constants of its code. A
 * uop names its operands by byte offset from the start of that block, so that a vector register, a scalar
 * register (of which a broadcast copy is kept, its "shadow") and a constant are all the same thing to a
 * vector handler: 32 dwords at an offset. Wave64 runs each vector instruction as two uops, one per half of 32
 * lanes, as the hardware does (RDNA3 Shader ISA document, section 3.1 "Wave32 and Wave64"). */
#ifndef BW_MOCK_ISA_WAVE_H
#define BW_MOCK_ISA_WAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mock/isa/inst.h"
#include "mock/isa/isa.h"

struct bw_wave;
struct bw_uop;
struct bw_worker;
struct bw_group;
struct bw_berth;
struct bw_code;
struct bw_program;

enum {
    BW_LANES = 32, /* lanes of one vector register half */
    BW_VREG_BYTES = BW_LANES * 4,
    BW_WAVE_ALIGN = 128, /* two cache lines: a vector register never straddles one more than needed */
    BW_VGPR_MAX = 256,
    BW_GROUP_WAVES_MAX = 32, /* 1024 work-items in waves of 32 (RDNA3 ISA document, section 3.1) */
    BW_WAVE_TEMPS = 24,      /* vectors for operands that need preparing and results that need finishing */
};

/* Scalar storage is indexed by operand encoding (RDNA3 ISA document, table "Scalar operands"), and goes on
 * with slots of our own for what has no register of its own. */
enum bw_slot {
    BW_SLOT_SINK = 128,        /* two: writes to NULL */
    BW_SLOT_SHARED_BASE = 130, /* pairs: the 64-bit apertures */
    BW_SLOT_SHARED_LIMIT = 132,
    BW_SLOT_PRIVATE_BASE = 134,
    BW_SLOT_PRIVATE_LIMIT = 136,
    BW_SLOT_SCC = 138,
    BW_SLOT_TEMP = 140, /* two: lane masks and scalar values on their way */
    BW_SLOT_COUNT = 144,
};

/* A handler performs one uop and goes on with the next; it returns NULL when the wave stops running (its
 * reason is in wave->stop), or, in builds without tail calls, the uop to run next. */
typedef const struct bw_uop *(*bw_handler)(struct bw_wave *wave, const struct bw_uop *uop);

struct bw_uop {
    bw_handler run;
    int32_t d, a, b, c; /* byte offsets from the wave: destination and sources */
    union {
        uint64_t imm;
        struct {
            int32_t e, f; /* more operands */
        };
        const struct bw_uop *target; /* of a branch */
        struct bw_program *program;
    };
    uint32_t ordinal; /* counted instructions before this one in its program */
    int32_t pc;       /* bytes from struct bw_code.entry_va */
    int32_t x;        /* offset of the EXEC word of this half */
    int32_t g;        /* one more operand; for branches: the instruction count that taking it adds */
};
_Static_assert(sizeof(struct bw_uop) == 48, "uops are laid out for three per 144 bytes");

struct bw_vreg {
    uint32_t lane[BW_LANES];
} __attribute__((aligned(BW_VREG_BYTES)));

enum bw_wave_stop {
    BW_WAVE_RUNNING,
    BW_WAVE_ENDED,
    BW_WAVE_BARRIER,
    BW_WAVE_YIELD, /* budget used up, or s_sleep: runnable */
    BW_WAVE_FAULT, /* worker->fault says what */
    BW_WAVE_MODE,  /* MODE was written: go on in the program translated for it */
};

struct bw_wave {
    int64_t budget; /* executed so far = granted - budget + ordinal of the next uop; below 0: poll */
    uint32_t sgpr[BW_SLOT_COUNT]; /* not first: an operand offset of 0 means that there is none */
    int64_t granted;
    uint64_t counted; /* of those executed, what the worker's count has */
    struct bw_worker *worker;
    uint8_t *lds; /* of the group */
    uint64_t lds_bytes;
    uint64_t scratch_va;    /* FLAT_SCRATCH: this wave's part of the scratch memory */
    uint64_t scratch_bytes; /* of this wave, 0 without scratch */
    uint64_t shared_aperture, private_aperture;
    const struct bw_uop *resume; /* where to go on */
    struct bw_program *program;
    struct bw_group *group;
    const struct bw_isa_dispatch *dispatch;
    uint32_t mode;             /* MODE register as s_getreg shows it */
    uint32_t stop;             /* enum bw_wave_stop */
    uint32_t index;            /* in its group */
    uint32_t constants_filled; /* of code->constants; code_id says whose */
    uint64_t code_id;
    uint64_t code_va; /* pc of a uop = code_va + uop->pc */
    uint32_t trap_status;
    uint32_t slot; /* of the worker's wave blocks */
    uint32_t wave_size;
    struct bw_vreg temp[BW_WAVE_TEMPS];
    struct bw_vreg shadow[BW_SLOT_COUNT]; /* shadow[i].lane[*] == sgpr[i], except SCC and our own slots */
    struct bw_vreg vgpr[];                /* then the constants */
};
_Static_assert(offsetof(struct bw_wave, sgpr) != 0,
               "scratch with s0 as its address is told from scratch without");

#define BW_AT(type, wave, offset) ((type *)(void *)((char *)(wave) + (offset)))
#define BW_OFFSET_SGPR(index)     ((int32_t)(offsetof(struct bw_wave, sgpr) + 4 * (size_t)(index)))
#define BW_OFFSET_SHADOW(index) \
    ((int32_t)(offsetof(struct bw_wave, shadow) + BW_VREG_BYTES * (size_t)(index)))
#define BW_OFFSET_TEMP(index) ((int32_t)(offsetof(struct bw_wave, temp) + BW_VREG_BYTES * (size_t)(index)))
#define BW_OFFSET_VGPR(index) ((int32_t)(offsetof(struct bw_wave, vgpr) + BW_VREG_BYTES * (size_t)(index)))

/* A range of memory that a worker has resolved with some right; size_bytes == 0 means none. */
struct bw_range {
    uint64_t start_va;
    uint64_t size_bytes;
    uint8_t *host; /* of start_va */
};

enum {
    /* Each memory instruction looks in the entry that its program gave it, so that an instruction that stays
     * in one buffer always hits. 64 covers the memory instructions of most loops. */
    BW_RANGE_ENTRIES = 64,
    /* Instructions between polls of control->stop: a few hundred microseconds at most, and long enough to
       vanish. */
    BW_WAVE_BUDGET = 1 << 16,
    BW_JUMP_ENTRIES = 64, /* indirect branch targets remembered by a worker */
};

struct bw_fault {
    enum bw_isa_status status;
    uint64_t pc, va;
    uint32_t access, lane;
    char text[192];
};

struct bw_worker {
    struct bw_range read[BW_RANGE_ENTRIES];
    struct bw_range write[BW_RANGE_ENTRIES];
    struct bw_range atomic[BW_RANGE_ENTRIES];
    struct {
        uint64_t pc;
        const struct bw_program *program;
        const struct bw_uop *uop;
    } jump[BW_JUMP_ENTRIES];
    struct bw_isa_memory memory;
    uint64_t generation;
    struct bw_isa_pool *pool;
    struct bw_isa_control *control;
    struct bw_fault fault;
    uint64_t instructions, waves;
    uint64_t reported; /* instructions added to control->instructions */
    uint32_t polls;    /* since the running group came on */
    bool alone;        /* the running wave is the only one of its group that can run: no need to yield */
    struct bw_berth *berths; /* free ones */
    uint32_t *ids;           /* work-item ids of a group of ids_size */
    uint32_t ids_size[3], ids_components;
    const void *memory_user; /* whose ranges are remembered */
    uint64_t jumps_of;       /* id of the code whose jumps are remembered */
    unsigned index;
};

static inline uint64_t bw_sgpr64(const struct bw_wave *wave, int32_t offset)
{
    uint64_t value;
    __builtin_memcpy(&value, (const char *)wave + offset, 8);
    return value;
}

/* Where the wave stops on a fault: fills the worker's fault record. Returns NULL, so that a handler can
 * return it. */
const struct bw_uop *bw_wave_fault(struct bw_wave *wave, const struct bw_uop *uop, enum bw_isa_status status,
                                   uint64_t va, uint32_t access, uint32_t lane);

/* Puts more words before the text of the fault just recorded, which names the instruction. */
void bw_wave_explain(struct bw_wave *wave, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Host address of va when size_bytes from there may be accessed so, else NULL; fills *range. */
uint8_t *bw_worker_resolve(struct bw_worker *worker, struct bw_range *range, uint64_t va, uint64_t size_bytes,
                           enum bw_isa_access access);

/* The budget has run out at a branch to `target`: polls, and goes on or returns NULL to let other waves run.
 */
const struct bw_uop *bw_wave_poll(struct bw_wave *wave, const struct bw_uop *target);

/* Goes on at pc, which no branch names directly: finds or translates it. NULL on a fault. */
const struct bw_uop *bw_wave_jump(struct bw_wave *wave, const struct bw_uop *uop, uint64_t pc);

/* A wave has stopped: its instructions go to the worker's count. */
void bw_wave_finish_count(struct bw_wave *wave);

/* Hardware registers and returned messages named by the uop; false after a fault. */
bool bw_wave_get_register(struct bw_wave *wave, const struct bw_uop *uop, uint32_t *value);
const struct bw_uop *bw_wave_set_register(struct bw_wave *wave, const struct bw_uop *uop, uint32_t value);
bool bw_wave_message(struct bw_wave *wave, const struct bw_uop *uop, uint64_t *value);

/* S_ICACHE_INV: code that was changed while the dispatch runs is refused; between dispatches it is noticed
 * anyway. */
const struct bw_uop *bw_wave_check_code(struct bw_wave *wave, const struct bw_uop *uop);

/* MODE was written: goes on after uop in the program translated for wave->mode. */
const struct bw_uop *bw_wave_change_mode(struct bw_wave *wave, const struct bw_uop *uop);

#endif
