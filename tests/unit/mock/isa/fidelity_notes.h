/* What the table cannot say of itself, for docs/fidelity.md: why an operation is labelled unknown, which
 * forms are refused or held to more than hardware asks, what was chosen, what is no part of the model. */
#ifndef BW_TESTS_FIDELITY_NOTES_H
#define BW_TESTS_FIDELITY_NOTES_H

#include <stdbool.h>
#include <stdint.h>

#include "mock/isa/isa.h"

/* The operations that one of the patterns names (fnmatch, separated by spaces) and that are executed, but
 * labelled unknown. Each such row of the table is named by one note, the first that fits. */
struct fidelity_note {
    const char *patterns, *reason;
    bool may_be_empty; /* a rest that work in progress empties */
};

static const struct fidelity_note fidelity_notes[] = {
    {"V_DOT2_F16_F16 V_DOT2_BF16_BF16",
     "Taken to be one step of WMMA's sum, which was measured; of these operations nobody published "
     "measurements.",
     false},
    {"V_FRACT_F16",
     "Whether the result is kept below one, as in the other two types, is not documented. Here it is; "
     "measured on gfx1201 "
     "only.",
     false},
    {"V_CVT_PK_I16_F32 V_CVT_PK_U16_F32 V_CVT_PK_U8_F32",
     "Whether they cut or round is not documented. Here the first two cut and the last rounds as MODE says; "
     "measured on "
     "gfx1201 only.",
     false},
    {"S_SENDMSG* S_TRAP S_SETHALT S_RFE_B64 S_ENDPGM_SAVED S_SETKILL S_WAIT_EVENT S_CBRANCH_CDBG* S_CODE_END",
     "They talk to what surrounds a wave: the trap handler, the debugger, the graphics pipeline.", false},
    {"DS_SWIZZLE_B32",
     "Rotations with a mask: the ISA document's examples contradict its pseudocode, which is followed. All "
     "other modes "
     "are compared, with its examples.",
     false},
};

/* Forms that are refused, and forms that the emulator refuses although hardware does something with them.
 * Each is run by fidelity_test.c, which expects this status. MODE fields are set by S_SETREG. */
struct fidelity_refusal {
    const char *what;
    enum bw_isa_status status;
    uint32_t wave_size;
    uint32_t words[14]; /* ends at the first zero behind the instructions; then S_ENDPGM */
};

#define ROUND_HALVES_UP 0xb9800881, 1 /* s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), 1 */
static const struct fidelity_refusal fidelity_refusals[] = {
    {"normalised conversions where MODE does not round to nearest: whether they follow MODE is not "
     "documented",
     BW_ISA_UNSUPPORTED,
     32,
     {ROUND_HALVES_UP, 0xd7120000, 0x00020501}},
    {"V_MOVREL* with DPP: which register the lane is taken from is not documented",
     BW_ISA_UNSUPPORTED,
     32,
     {0x7e0086fa, 0xff00e401}},
    {"V_FMA_MIX* with a constant taken as a half: which number it is then is not documented",
     BW_ISA_UNSUPPORTED,
     32,
     {0xcc200000, 0x0c0a02f2}},
    {"neg_hi on the third operand of V_DOT2_F32_*: what it does to a single is not documented",
     BW_ISA_UNSUPPORTED,
     32,
     {0xcc134400, 0x1c0e0501}},
    {"V_PK_FMAC_F16 with an inline constant: documents contradict each other on its high half",
     BW_ISA_UNSUPPORTED,
     32,
     {0x780002f2}},
    {"abs and neg of DPP on packed halves: which half they mean is not documented",
     BW_ISA_UNSUPPORTED,
     32,
     {0x780004fa, 0xff10e401}},
    {"packed shifts with clamp", BW_ISA_UNSUPPORTED, 32, {0xcc04c000, 0x18020501}},
    {"hardware registers other than MODE, STATUS, TRAPSTS, GPR_ALLOC, LDS_ALLOC, IB_STS, SH_MEM_BASES, "
     "FLAT_SCR, HW_ID "
     "and SHADER_CYCLES",
     BW_ISA_UNSUPPORTED,
     32,
     {0xb880f812}},
    {"S_SENDMSG_RTN other than the real time", BW_ISA_UNSUPPORTED, 32, {0xbe804c80}},
    {"GDS", BW_ISA_UNSUPPORTED, 32, {0xd8020000, 0x00000100}},
    {"typed buffer accesses whose format is 0 or beyond the table of formats",
     BW_ISA_UNSUPPORTED,
     32,
     {0xea680000, 0x80400001}},
    {"stores with TFE", BW_ISA_UNSUPPORTED, 32, {0xe0680000, 0x80600001}},
    {"more than an element of a swizzled buffer at once (must not be)",
     BW_ISA_UNSUPPORTED,
     32,
     {0xbe8100ff, 0x40000000, 0xbe8300ff, 0x20014000, 0xe0540000, 0x80000400}},
    {"a buffer whose SWIZZLE_ENABLE is 2, which is reserved",
     BW_ISA_UNSUPPORTED,
     32,
     {0xbe8100ff, 0x80000000, 0xe0500000, 0x80400001}},
};

static const struct fidelity_refusal fidelity_strict[] = {
    {"a VGPR beyond the allocation (hardware: v0 is read, nothing written)",
     BW_ISA_ILLEGAL_INSTRUCTION,
     32,
     {0x7e800300}},
    {"a VGPR beyond it by way of M0", BW_ISA_ILLEGAL_INSTRUCTION, 32, {0xbefd00c0, 0x7e008700}},
    {"a VOPD pair in wave64 (undefined)", BW_ISA_ILLEGAL_INSTRUCTION, 64, {0xca100104, 0x00000109}},
    {"a VOPD pair that takes two registers of one bank (undefined)",
     BW_ISA_ILLEGAL_INSTRUCTION,
     32,
     {0xca100104, 0x00000108}},
    {"an integer WMMA with the signs of C set (must be zero)",
     BW_ISA_ILLEGAL_INSTRUCTION,
     32,
     {0xcc444000, 0x9c421908}},
    {"scratch beyond what a wave has (hardware: another wave's)",
     BW_ISA_MEMORY_FAULT,
     32,
     {0xdc510000, 0x007c0000}},
    {"running into S_CODE_END", BW_ISA_ILLEGAL_INSTRUCTION, 32, {0xbf9f0000}},
    {"16-bit operands in high halves in the 32-bit encodings (LLVM makes none of them)",
     BW_ISA_ILLEGAL_INSTRUCTION,
     32,
     {0x7f003901}},
};

/* Where documents are silent or contradict each other, and the reference follows one reading. */
static const char *const fidelity_readings[] = {
    "DPP16: a lane out of range or off reads 0 with bound_ctrl and leaves the result alone without; the text "
    "of section "
    "7.7 is followed, not table 31.",
    "NaN results of arithmetic are compared as \"a NaN\": which payload survives is not documented. "
    "Operations that hand a "
    "source on are compared bit for bit.",
    "Measured on gfx1100 and published with AMD's rocjitsu (ROCm/rocm-systems, emulation/rocjitsu), and "
    "followed: how "
    "V_DOT2_F32_* and WMMA cut, add and round; the thresholds and roundings of V_DIV_SCALE, V_DIV_FMAS and "
    "V_DIV_FIXUP; "
    "that V_TRIG_PREOP_F64 knows 1184 bits of 2/pi, not 1201, and cuts.",
    "Output modifiers (omod): denormals become +0, halving the smallest normal number gives a zero of its "
    "sign, overflow "
    "follows MODE and FP16_OVFL. Measured on gfx1010, gfx1030 and gfx1201, in part on gfx1100 (same source).",
    "V_CVT_FLOOR_I32_F32 and V_CVT_NEAREST_I32_F32 of a NaN give 0, as documented; gfx1201 was measured to "
    "give the bound "
    "of the NaN's sign.",
    "Bits of carry-out masks that belong to lanes that are off are not compared; those of comparisons are "
    "(zero).",
    "V_CMP_CLASS and V_CMPX_CLASS see denormals whatever MODE says. Compared in the default mode only, with "
    "V_PACK_B32_F16, "
    "V_CUBESC_F32 and V_CUBETC_F32.",
    "Float atomics follow the selection rules of section 13.3 (-0 below +0, a number before a quiet NaN), "
    "not the "
    "comparisons of section 16's pseudocode. One that compares and swaps flushes what it stores, and stores "
    "nothing where it "
    "does not swap. FLAT in LDS obeys MODE's bit for input denormals only.",
    "LDS and memory take any alignment (SH_MEM_CONFIG.alignment_mode is unaligned, as Linux sets it); "
    "atomics must be "
    "aligned. LDS out of range reads 0 and drops stores and atomics (ADDR_OUT_OF_RANGE_REPORTING is off), "
    "but "
    "faults through "
    "the flat aperture. An element of which a part is outside is outside whole, and so are both elements of "
    "a "
    "load of two "
    "addresses; stores and exchanges of two addresses are checked one by one.",
    "Addresses: LDS wraps around at 32 bits, as LLVM counts on; scratch and buffer offsets do not. The "
    "scalar offset of a "
    "buffer takes from its records in raw mode only, and leaves none when it is larger. With TFE the status "
    "register keeps "
    "what it held, for nothing is ever missing. Scalar buffer loads take 14 bits of stride.",
    "Formats: numbers that a result cannot hold are rounded to the nearest even, in D16 those of single "
    "precision are cut; the bound is the Vulkan specification's (\"Fixed-Point Data Conversions\": one of "
    "the "
    "two nearest). What is stored is clamped to what its format holds, NaN becomes 0 where the format has "
    "numbers or "
    "integers, -0 and negative numbers become 0 where it has no sign. MTBUF takes the components as they "
    "are, "
    "MUBUF by DST_SEL, loads and stores alike; a component that a store does not give is the first one, one "
    "that the format does not have loads as 0. D16 takes "
    "the low half of an integer. An "
    "element is aligned to its size, at most to four bytes.",
    "Integer WMMA saturates with the clamp bit, as LLVM and AMD's article on WMMA have it, though section "
    "7.2.3.1 has the "
    "bit ignored.",
};

static const char *const fidelity_missing[] = {
    "Caches and weak ordering: memory operations of a wave complete at once and in program order, and are "
    "seen by every "
    "other wave at once. A missing S_WAITCNT, cache bit (glc, slc, dlc) or invalidation shows nothing here.",
    "Time: there is none. Counters read the clock that the engine gives; sleep, priority, clauses, delays "
    "and prefetch do "
    "nothing.",
    "Exceptions of arithmetic: TRAPSTS keeps what is written, no operation raises a bit, MODE's enable bits "
    "do nothing.",
    "The trap handler: S_TRAP and S_SETHALT end the dispatch and say so.",
    "Graphics: MIMG, VSAMPLE, EXP, VINTERP do not decode, LDSDIR does and is refused; NGG and pixel waves do "
    "not exist.",
    "Code that changes while it runs, and code farther than 2 GiB from the kernel's entry: refused.",
    "What registers and LDS hold before they are written is not specified: with a seed it is a pattern of "
    "the seed, "
    "without it zero.",
};

#endif
