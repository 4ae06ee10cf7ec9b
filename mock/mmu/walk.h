/* The page-table walker of an AMD GPU's memory hub, as the hardware does it: from the words in modelled
 * memory to an address. Written from AMD's debugger umr (src/lib/vm/access_vram_ai.c, decode_pde_entry.c and
 * decode_pte_entry.c, database/ip/{gc_9_4_3,gc_11_0_0,gc_12_0_0}.reg) and from public dumps of page tables of
 * boards; never from the driver's encoder, so that the two can be laid beside each other.
 *
 * One question: struct bw_mock_mmu_hub hub = {.generation = BW_MOCK_MMU_GFX11, .read = read, .user = memory};
 *     struct bw_mock_mmu_context context = {.hub = &hub, .vmid = 1, .enable = true, .depth = 3,
 *                                           .base = root | 1, .start = 0, .end = (1ull << 48) - 1};
 *     struct bw_mock_mmu_result result;
 *     if (bw_mock_mmu_walk(&context, va, BW_MOCK_MMU_READ, &result) == 0)
 *         ... result.place.aperture, result.place.address, result.contiguous_bytes ...
 *
 * The structures stand for fields of registers and are what a register file fills: byte addresses (a field
 * shifted to its place), ends that are the last byte. Nothing is kept between calls; any thread, as long as
 * the structures and the modelled memory stand still. */
#ifndef BW_MOCK_MMU_WALK_H
#define BW_MOCK_MMU_WALK_H

#include <stdbool.h>
#include <stdint.h>

enum bw_mock_mmu_generation {
    BW_MOCK_MMU_GFX9_4, /* gfx942, gfx950 */
    BW_MOCK_MMU_GFX11,
    BW_MOCK_MMU_GFX12,
    BW_MOCK_MMU_GENERATION_COUNT,
};

/* What an access does. An instruction fetch asks for read and execute, an atomic for read and write. */
enum bw_mock_mmu_op { BW_MOCK_MMU_READ, BW_MOCK_MMU_WRITE, BW_MOCK_MMU_EXECUTE, BW_MOCK_MMU_ATOMIC };

enum bw_mock_mmu_aperture {
    BW_MOCK_MMU_NOWHERE, /* a page of a partially resident texture: reads give zeros, writes go nowhere */
    BW_MOCK_MMU_VRAM,    /* own VRAM, address is the offset in it */
    BW_MOCK_MMU_PEER,    /* VRAM of the GPU in another segment of the hive, address is the offset in it */
    BW_MOCK_MMU_SYSTEM,  /* address is one of the bus */
    BW_MOCK_MMU_DEFAULT, /* MC_VM_SYSTEM_APERTURE_DEFAULT_ADDR: the page that accesses to no aperture reach */
};

struct bw_mock_mmu_place {
    enum bw_mock_mmu_aperture aperture;
    uint32_t region; /* of a peer: its segment's index in the hive, else 0 */
    uint64_t address;
};

/* The walker reads an entry of 8 bytes, aligned. Not 0: nothing answers there. */
typedef int bw_mock_mmu_read(void *user, const struct bw_mock_mmu_place *place, uint64_t *word);

/* MC_VM_MX_L1_TLB_CNTL.SYSTEM_ACCESS_MODE: how VMID 0 is translated. Other VMIDs always are. */
enum bw_mock_mmu_access_mode {
    BW_MOCK_MMU_PHYSICAL,        /* nothing is */
    BW_MOCK_MMU_TRANSLATED,      /* everything is */
    BW_MOCK_MMU_INSIDE_MAPPED,   /* what lies inside the system aperture */
    BW_MOCK_MMU_INSIDE_UNMAPPED, /* what lies outside of it; what drivers use */
};

enum bw_mock_mmu_mtype { BW_MOCK_MMU_NC, BW_MOCK_MMU_RW, BW_MOCK_MMU_CC, BW_MOCK_MMU_UC };

/* One hub. Zeros are a hub whose VRAM begins at physical address 0, with VMID 0 not translated. */
struct bw_mock_mmu_hub {
    enum bw_mock_mmu_generation generation;
    bool lenient; /* what the strict walker refuses by name (enum bw_mock_mmu_violation) passes where the
                     hardware can make something of it */
    bw_mock_mmu_read *read;
    void *user;
    uint64_t vram_bytes;      /* 0: not checked */
    uint64_t fb_base, fb_top; /* MC_VM_FB_LOCATION_*; of a hive: of all its segments. top < base: VRAM is
                                 carved out of system memory and reached through the AGP window */
    uint64_t fb_offset;       /* MC_VM_FB_OFFSET: physical address of where the window begins */
    enum bw_mock_mmu_access_mode access_mode;
    uint64_t system_low, system_high; /* MC_VM_SYSTEM_APERTURE_* */
    uint64_t agp_base, agp_bot,
        agp_top;              /* MC_VM_AGP_*: [bot, top] leads to the bus at base. top < bot: off */
    uint64_t default_address; /* MC_VM_SYSTEM_APERTURE_DEFAULT_ADDR */
    enum bw_mock_mmu_mtype system_mtype; /* MC_VM_MX_L1_TLB_CNTL.MTYPE */
    uint64_t segment_bytes;              /* MC_VM_XGMI_LFB_SIZE; 0: no hive */
    uint32_t region, region_max;         /* MC_VM_XGMI_LFB_CNTL: own segment, the last one */
};

/* One VM_CONTEXT. */
struct bw_mock_mmu_context {
    const struct bw_mock_mmu_hub *hub;
    uint32_t vmid;
    bool enable;
    uint32_t depth;      /* PAGE_TABLE_DEPTH: levels of directories above the page table */
    uint32_t block_size; /* PAGE_TABLE_BLOCK_SIZE: a page table covers 2 MiB << this */
    uint64_t base;       /* PAGE_TABLE_BASE_ADDR: a directory entry: address and flags */
    uint64_t start, end; /* first and last byte; tables are indexed from start */
};

enum { BW_MOCK_MMU_VMIDS = 16, BW_MOCK_MMU_PAGE_SHIFT = 12 };

/* WALKER_ERROR of VM_L2_PROTECTION_FAULT_STATUS. No document gives the values; their order is that of the
 * fields of VM_L2_PROTECTION_FAULT_CNTL, and logs of boards agree: 1 for an address outside of a context, 6
 * named NACK, 5 for what gfx12 finds without bit 63 (docs/fidelity.md). */
enum bw_mock_mmu_walker_error {
    BW_MOCK_MMU_WALKED, /* an entry for a page was reached */
    BW_MOCK_MMU_ERROR_RANGE,
    BW_MOCK_MMU_ERROR_PDE0,
    BW_MOCK_MMU_ERROR_PDE1,
    BW_MOCK_MMU_ERROR_PDE2,
    BW_MOCK_MMU_ERROR_FURTHER,
    BW_MOCK_MMU_ERROR_NACK, /* nothing answered the read of an entry */
    BW_MOCK_MMU_ERROR_DUMMY,
};

/* PERMISSION_FAULTS: what was asked for and is missing (the kernel's Documentation/gpu/amdgpu/debugging.rst).
 */
enum bw_mock_mmu_permission {
    BW_MOCK_MMU_NOT_VALID = 1,
    BW_MOCK_MMU_NOT_READABLE = 2,
    BW_MOCK_MMU_NOT_WRITABLE = 4,
    BW_MOCK_MMU_NOT_EXECUTABLE = 8,
};

/* What a strict walker refuses by name: what no document allows, whatever the silicon makes of it. */
enum bw_mock_mmu_violation {
    BW_MOCK_MMU_NO_VIOLATION,
    BW_MOCK_MMU_VA_HOLE,           /* more than 48 bits and not their sign: an aperture violation, which the
                                      fault registers never see */
    BW_MOCK_MMU_NO_APERTURE,       /* VMID 0, untranslated, in neither the FB nor the AGP window */
    BW_MOCK_MMU_RESERVED_BITS,     /* of a valid entry */
    BW_MOCK_MMU_RESERVED_MTYPE,    /* a memory type above UC */
    BW_MOCK_MMU_MISALIGNED_PAGE,   /* a large page whose physical address is not a multiple of its size */
    BW_MOCK_MMU_LEAF_WITHOUT_MARK, /* gfx12: a valid entry of a page table without bit 63 that leads no
                                      further */
    BW_MOCK_MMU_BLOCK_FRAGMENT,    /* a block fragment size that leaves no bits for an index */
    BW_MOCK_MMU_FURTHER_TWICE,     /* translate-further from a table that was reached so */
    BW_MOCK_MMU_ADDRESS_WIDTH,     /* a physical address that the generation does not have */
    BW_MOCK_MMU_BELOW_FB,          /* of VRAM, below MC_VM_FB_OFFSET */
    BW_MOCK_MMU_PAST_VRAM,         /* of own VRAM, past its end */
    BW_MOCK_MMU_NO_REGION,         /* of the hive, past its last segment */
    BW_MOCK_MMU_ENCRYPTED,         /* a page with bit 3 (TMZ), which is not modelled */
    BW_MOCK_MMU_VIOLATION_COUNT,
};

struct bw_mock_mmu_fault {
    uint64_t va;
    uint32_t vmid;
    enum bw_mock_mmu_op op;
    enum bw_mock_mmu_walker_error walker_error;
    uint32_t permission; /* enum bw_mock_mmu_permission bits */
    bool mapping_error;  /* no entry for a page was reached */
    enum bw_mock_mmu_violation violation;
    struct bw_mock_mmu_place entry; /* the last entry that was read, or tried; NOWHERE: none was */
    uint64_t word;                  /* what it held */
};

struct bw_mock_mmu_result {
    struct bw_mock_mmu_place place;
    uint64_t contiguous_bytes; /* from va to the end of the page, or of the fragment if that is larger, or of
                                  the aperture: all of it is at place, in a row */
    uint64_t page_bytes;       /* what the entry covers by its place in the tables; 0: untranslated */
    uint64_t fragment_bytes;   /* what the L1 TLB keeps for it: page_bytes, or more if the entry says so */
    enum bw_mock_mmu_mtype mtype;
    bool snooped, readable, writable, executable;
    bool prt;                       /* a page of a partially resident texture, not there */
    uint32_t entries_read;          /* words of 8 bytes */
    uint64_t word;                  /* the entry of the page */
    struct bw_mock_mmu_fault fault; /* when -EFAULT is returned */
};

/* Translates one access of an address; one that crosses the end of contiguous_bytes is the caller's loop.
 * The fragment of an entry is believed: the address is the entry's above the fragment, and va's below it,
 * which is the wrong page where the fragment lies. 0, or -EFAULT with result->fault filled. */
int bw_mock_mmu_walk(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                     struct bw_mock_mmu_result *result);

/* Two parts of that, for a cache in front of the walker. */

/* VMID 0 in an aperture that is not translated: true, with *rc and *result as of bw_mock_mmu_walk. */
bool bw_mock_mmu_untranslated(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                              struct bw_mock_mmu_result *result, int *rc);
/* level: 0 for entries of page tables, n for PDEn-1. Not 0: nothing answers there. */
typedef int bw_mock_mmu_fetch(void *user, uint32_t level, const struct bw_mock_mmu_place *place,
                              uint64_t *word);
/* Walks the tables, whatever the apertures say, and reads their entries through fetch. */
int bw_mock_mmu_walk_tables(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                            bw_mock_mmu_fetch *fetch, void *user, struct bw_mock_mmu_result *result);
/* May the page of *result be accessed so? 0, or -EFAULT with result->fault filled. */
int bw_mock_mmu_check(const struct bw_mock_mmu_context *context, uint64_t va, enum bw_mock_mmu_op op,
                      struct bw_mock_mmu_result *result);

const char *bw_mock_mmu_walker_error_name(enum bw_mock_mmu_walker_error error);
const char *bw_mock_mmu_violation_name(enum bw_mock_mmu_violation violation);

#endif
