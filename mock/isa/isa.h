/* The ISA emulator's face to the engines: run one dispatch of machine code over modelled memory.
 *
 * The command processor model (mock/engine) turns register state into a struct bw_isa_dispatch; what happens
 * inside waves is this directory's business. Source of the initial register state: LLVM AMDGPUUsage, "Initial
 * Kernel Execution State"; COMPUTE_PGM_RSRC1/2/3 fields: AMDGPUUsage "Kernel Descriptor" and the RDNA3 ISA
 * document. */
#ifndef BW_MOCK_ISA_ISA_H
#define BW_MOCK_ISA_ISA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct bw_text;

enum bw_isa_access {
    BW_ISA_READ = 1,
    BW_ISA_WRITE = 2,
    BW_ISA_ATOMIC = 4,
    BW_ISA_EXECUTE = 8,
};

/* Memory as a wave sees it. `resolve` returns the host address of va and, in *valid_bytes, how far it stays
 * valid with these rights from va on; NULL when va is not mapped with these rights. It must be thread safe.
 * Workers cache what it returns until *generation changes, so whoever unmaps bumps generation, then waits
 * until no dispatch runs. */
struct bw_isa_memory {
    void *(*resolve)(void *user, uint64_t va, enum bw_isa_access access, uint64_t *valid_start,
                     uint64_t *valid_bytes);
    void *user;
    const _Atomic uint64_t *generation;
};

enum { BW_ISA_PLACE_WORDS = 8 }; /* of struct bw_isa_place */

/* What a dispatch starts from. All values as the registers hold them, already decoded from shifts. */
struct bw_isa_dispatch {
    uint64_t entry_va; /* COMPUTE_PGM, byte address */
    uint32_t rsrc1, rsrc2, rsrc3;
    uint32_t wave_size;      /* 32 or 64 */
    uint32_t group_count[3]; /* workgroups per dimension; any 0 means nothing runs */
    uint32_t group_start[3];
    uint32_t group_size[3];      /* work-items per group and dimension */
    uint32_t last_group_size[3]; /* size of the last group in each dimension (AQL partial groups); 0 =
                                    group_size */
    uint32_t user_sgpr[32];      /* COMPUTE_USER_DATA_n; rsrc2 says how many are loaded */
    uint32_t lds_bytes;
    uint64_t scratch_base;       /* 0 when no scratch */
    uint32_t scratch_wave_bytes; /* from COMPUTE_TMPRING_SIZE.WAVESIZE */
    uint32_t scratch_wave_slots; /* from COMPUTE_TMPRING_SIZE.WAVES: how many waves may use scratch at once */
    uint64_t shared_aperture,
        private_aperture; /* the 64-bit bases of the LDS and scratch apertures in flat space */
    struct bw_isa_memory memory;
    uint64_t seed;     /* single-step mode: order of groups and waves; also stale-register content */
    bool single_step;  /* one host thread, interleaving waves in an order fixed by seed */
    uint64_t clock_hz; /* of the counters that s_memtime/s_sendmsg_rtn(REALTIME) read */
    uint64_t (*clock)(void *user);
    void *clock_user;
    /* Single-step mode: called between turns of waves with what was done since the last call; NULL: not
     * wanted. It may take its time, and memory may be unmapped meanwhile. */
    void (*pause)(void *user, uint64_t instructions, uint64_t turns);
    void *pause_user;
};

enum bw_isa_status {
    BW_ISA_DONE,
    BW_ISA_STOPPED,             /* control->stop was set (queue reset, deadline) */
    BW_ISA_MEMORY_FAULT,        /* va not mapped or not with these rights */
    BW_ISA_MISALIGNED,          /* an atomic of memory; va is its address */
    BW_ISA_LDS_MISALIGNED,      /* one of LDS; va counts from its start, or from the aperture */
    BW_ISA_ILLEGAL_INSTRUCTION, /* unknown opcode or reserved encoding */
    BW_ISA_LDS_OUT_OF_RANGE,
    BW_ISA_TRAP,         /* s_trap, s_sethalt */
    BW_ISA_BAD_DISPATCH, /* register state that hardware refuses; text says which */
    BW_ISA_UNSUPPORTED,  /* a legal operation that this emulator does not execute yet; text names it */
    BW_ISA_DEADLOCK,     /* every wave of a group waits for something that cannot come */
};

/* Where a workgroup is that has used its turn without ending. */
struct bw_isa_place {
    uint32_t group[3];
    uint32_t live;       /* its waves that have started and not ended: bit per wave */
    uint32_t at_barrier; /* those that wait at a barrier for the others */
    uint32_t wave;       /* one that does not, the lowest */
    uint64_t pc;         /* where that one goes on */
};

/* Shared with whoever watches; zero it before the run. */
struct bw_isa_control {
    _Atomic uint32_t stop;          /* set to end the dispatch early */
    _Atomic uint64_t waves_retired; /* progress */
    _Atomic uint64_t instructions;  /* wave-instructions executed, added in batches */
    /* The places last told, in turn, read by bw_isa_place_read. Words, since writer and readers do not wait
     * for each other: place_serial is twice the number of those told, odd while the next is written, over
     * the older of the two. */
    _Atomic uint32_t place_serial;
    _Atomic uint32_t place[2][BW_ISA_PLACE_WORDS];
};

/* The group of the running dispatch that was last seen to use its turn without ending: with nothing retired
 * for long, where it stands. False when there is none yet. Any thread. */
bool bw_isa_place_read(struct bw_isa_control *control, struct bw_isa_place *place);

struct bw_isa_result {
    enum bw_isa_status status;
    uint64_t pc;     /* of the instruction that failed */
    uint64_t va;     /* the address, for memory faults */
    uint32_t access; /* enum bw_isa_access bits */
    uint32_t group[3], wave, lane;
    uint64_t instructions; /* wave-instructions executed */
    uint64_t waves;        /* waves started */
    char text[192];        /* disassembly or reason, for people */
};

struct bw_isa_pool; /* worker threads, reused over dispatches */

/* threads = 0: one per online CPU. Ownership: caller destroys. 0, -ENOMEM, -EAGAIN. */
int bw_isa_pool_create(unsigned threads, struct bw_isa_pool **pool);
void bw_isa_pool_destroy(struct bw_isa_pool *pool);

/* arch: "gfx1100" (later more). 0, or -ENOTSUP when there is no emulator for it. */
struct bw_isa;
int bw_isa_find(const char *arch, const struct bw_isa **isa);

/* Also those whose code is only decoded: "gfx1201". What is found is for bw_isa_disassemble. */
int bw_isa_find_decoder(const char *arch, const struct bw_isa **isa);
/* The names of all of them, one by one; NULL past the end. */
const char *bw_isa_decoder_at(uint32_t index);

/* Runs the dispatch to its end on the pool, on the calling thread and the workers. Blocks. One call at a time
 * per pool; the result says how it ended. Never crashes on what the machine code does. */
void bw_isa_run(const struct bw_isa *isa, struct bw_isa_pool *pool, const struct bw_isa_dispatch *dispatch,
                struct bw_isa_control *control, struct bw_isa_result *result);

/* One instruction at code (up to code_bytes), as LLVM's disassembler prints it for that arch, appended to
 * text without a newline. pc is its address (branch targets). Returns its length in bytes, or 0 when it is
 * not an instruction. */
unsigned bw_isa_disassemble(const struct bw_isa *isa, const void *code, uint64_t code_bytes, uint64_t pc,
                            struct bw_text *text);

/* How true an operation of the emulator is; every row of the operation table has one (docs/fidelity.md lists
 * them). */
enum bw_isa_fidelity { BW_ISA_BIT_PROVED, BW_ISA_ULP_BOUNDED, BW_ISA_UNKNOWN };

#endif
