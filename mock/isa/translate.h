/* From decoded instructions to uops. Internal to the translator's files. */
#ifndef BW_MOCK_ISA_TRANSLATE_H
#define BW_MOCK_ISA_TRANSLATE_H

#include "mock/isa/program.h"

enum { BW_VECTOR_SOURCES = 3 };

struct bw_translator {
    const bw_handler *handlers; /* [BW_UOP_COUNT] of the host's level */
    struct bw_code *code;
    struct bw_program *program;
    struct bw_uop *uops;
    size_t count, capacity;
    const struct bw_inst *inst;
    uint64_t pc;
    uint32_t ordinal;
    unsigned half;                          /* which 32 lanes vector uops act on */
    unsigned temps_used;                    /* of this instruction */
    int32_t exec_offset;                    /* the mask that vector uops obey instead of EXEC, 0: EXEC */
    int32_t result_offset;                  /* where the result goes instead of the destination; 0: there */
    int32_t kept_source[BW_VECTOR_SOURCES]; /* copies that stand for sources; 0: none */
    bool is_target;                         /* control may arrive here from elsewhere */
    bool failed;                            /* out of memory */
    struct bw_lane_select spare;            /* stands in when memory is out */
    bool refused;                           /* this instruction becomes a fault uop */
    enum bw_isa_status refusal;
    uint8_t reason; /* enum bw_fault_reason */
};

/* Why an instruction became a fault uop (its b): told to people in the fault's text. */
enum bw_fault_reason {
    BW_REASON_NONE,
    BW_REASON_OPERATION,  /* not executed by this emulator */
    BW_REASON_MODIFIER,   /* operation executed, but not with this modifier or MODE */
    BW_REASON_OPERAND,    /* nor with this operand */
    BW_REASON_VGPR_COUNT, /* a register beyond what the dispatch allocated */
    BW_REASON_ENCODING,   /* no instruction */
    BW_REASON_CUT,        /* its beginning can be fetched, the rest not */
    BW_REASON_PAIR,       /* VOPD in wave64, or two registers of one bank */
    BW_REASON_DISTANCE,   /* code more than 2 GiB from the kernel's entry */
};

/* Appends a uop of that kind at the current instruction; when it has no handler, the instruction is refused.
 * The pointer is good until the next call, and never NULL. */
struct bw_uop *bw_emit(struct bw_translator *t, unsigned kind);
/* The uops of this instruction so far are dropped at its end and a fault takes their place. The first reason
 * stays. */
void bw_refuse(struct bw_translator *t, enum bw_isa_status status, enum bw_fault_reason reason);

/* Offsets of operands. Scalar ones are of the 32 or 64 bits themselves, vector ones of a vector of 32 lanes
 * per dword. */
int32_t bw_scalar_source(struct bw_translator *t, const struct bw_operand *operand);
int32_t bw_scalar_destination(struct bw_translator *t, const struct bw_operand *operand);
int32_t bw_vector_source(struct bw_translator *t, const struct bw_operand *operand);
int32_t bw_vector_destination(struct bw_translator *t, const struct bw_operand *operand);
int32_t bw_mask_operand(struct bw_translator *t, const struct bw_operand *operand, bool is_destination);
int32_t bw_constant_vector(struct bw_translator *t, uint32_t value);
int32_t bw_constant_scalar64(struct bw_translator *t, uint64_t value);
/* A run of temporary vectors. */
int32_t bw_temp(struct bw_translator *t, unsigned count);

/* Emits the current instruction t->inst at t->pc, or the fault that stands for it. */
void bw_translate(struct bw_translator *t);
void bw_translate_scalar(struct bw_translator *t);
void bw_translate_vector(struct bw_translator *t);
void bw_translate_vopd(struct bw_translator *t);
/* The ordinary vector instruction t->inst for the current half only. */
void bw_translate_lanes(struct bw_translator *t);
/* False when the instruction is an ordinary vector one. */
bool bw_translate_special(struct bw_translator *t);
/* The lanes of the current instruction's DPP modifier for the current half; lives as long as the code. */
struct bw_lane_select *bw_lane_select_of(struct bw_translator *t);
void bw_translate_memory(struct bw_translator *t);

/* What MODE and the clamp bit make of an operation (translate_modes.c). A kind of BW_UOP_COUNT: refused. */
unsigned bw_kind_clamped(unsigned op);      /* of an integer operation with the clamp bit */
bool bw_op_stays_in_range(unsigned op);     /* the clamp bit changes nothing */
bool bw_op_is_rounded(unsigned op);         /* by the host's rounding mode, in single and double precision */
unsigned bw_kind_rounded_half(unsigned op); /* half precision, rounding as told; 0: MODE changes nothing */
unsigned bw_kind_without_ieee(unsigned op); /* op itself when MODE.IEEE changes nothing */
bool bw_op_selects(unsigned op);
bool bw_op_is_dot2(unsigned op);
bool bw_op_keeps_source(unsigned op, unsigned index);

#endif
