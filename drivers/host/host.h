/* The CPU as a queue device: what a compiler must emit to run there.
 *
 * A program is an x86-64 ELF relocatable object (ET_REL, as LLVM or a C compiler emits it). The driver's own
 * loader places its sections, relocates them and makes code read-only and executable; nothing is written to
 * disk and no dynamic linker is involved.
 *
 * Kernel ABI (System V AMD64), called once per workgroup, from any thread, in any order, several groups at
 * once:
 *
 *     void kernel(const void *argument_block, uint32_t group_x, uint32_t group_y, uint32_t group_z);
 *
 * - A workgroup is one call: group_size of a launch is 1,1,1 and whatever a work-item is to the compiler is a
 * loop inside.
 * - argument_block is 16-byte aligned: 8 bytes per buffer address, then values naturally aligned, as the
 * record says (offsets in the record rule). It is read only.
 * - A call may use up to BW_HOST_STACK_BYTES_MAX of stack, may not block, and may not call anything but the
 * other functions of its object and the names below.
 * - MXCSR is the default at entry (round to nearest, denormals kept, exceptions masked) and is to be left so.
 * - Stores of one launch are visible to later packets of its queue and, through signals, to everyone.
 *
 * Undefined symbols that are resolved (nothing else is, by name, so that an object cannot reach into the
 * process; table in drivers/host/symbols_table.c): memcpy memmove memset memcmp; libm for f64 and, with
 * suffix f, for f32: acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2
 * expm1 fabs floor fma fmax fmin fmod hypot ldexp lgamma log log10 log1p log2 nearbyint pow rint round
 * roundeven sin sinh sqrt tan tanh tgamma trunc; the compiler's half and bfloat conversions __extendhfsf2
 * __truncsfhf2 __truncdfhf2 __truncsfbf2 __truncdfbf2.
 *
 * Relocations: R_X86_64_64, 32, 32S (only when the address fits), PC32, PC64, PLT32, GOTPCREL, GOTPCRELX,
 * REX_GOTPCRELX, GOTPCREL64, GOTOFF64, GOTPC32, GOTPC64. Calls and GOT loads of far names go through stubs
 * and a GOT beside the code, so the small and the large code model, with and without PIC, all work; no
 * thread-local storage, no IFUNC, no constructors.
 *
 * Metadata: the object's section BW_HOST_KERNEL_SECTION holds one struct bw_host_kernel_record per kernel,
 * each followed by its argument records, back to back, no relocations inside. From C:
 *
 *     static const struct { struct bw_host_kernel_record kernel; struct bw_host_argument_record arguments[2];
 * } scale_record
 *         __attribute__((section(BW_HOST_KERNEL_SECTION), used)) = { ... };
 *
 * From LLVM: fill the structs in memory and emit their bytes as one constant string in that section
 * (alignment 4, in llvm.used). */
#ifndef BW_DRIVERS_HOST_HOST_H
#define BW_DRIVERS_HOST_HOST_H

#include <stdint.h>

#define BW_HOST_KERNEL_SECTION ".bellwire.kernels"

enum {
    BW_HOST_KERNEL_MAGIC = 0x314b5742, /* "BWK1" in memory */
    BW_HOST_SYMBOL_BYTES_MAX = 128,    /* with its NUL */
    BW_HOST_ARGUMENTS_MAX = 1024,      /* of one kernel: bounds what a hostile object can ask for */
    BW_HOST_ARGUMENT_BLOCK_BYTES_MAX = 65536,
    BW_HOST_STACK_BYTES_MAX = 1 << 20, /* of one call, out of the worker's 8 MiB */
};

/* Kernel's functions have this type. */
typedef void bw_host_kernel_function(const void *argument_block, uint32_t group_x, uint32_t group_y,
                                     uint32_t group_z);

struct bw_host_argument_record {
    char name[32];       /* NUL terminated; empty is fine */
    uint32_t kind;       /* enum bw_argument_kind: BW_ARGUMENT_BUFFER or BW_ARGUMENT_VALUE */
    uint32_t offset;     /* into the argument block; a buffer's is a multiple of 8 */
    uint32_t size_bytes; /* 8 for a buffer; 1, 2, 4 or 8 for a value, at a multiple of itself */
    uint32_t reserved;   /* 0 */
};

struct bw_host_kernel_record {
    uint32_t magic;                        /* BW_HOST_KERNEL_MAGIC */
    uint32_t record_bytes;                 /* of this struct and its argument records */
    char symbol[BW_HOST_SYMBOL_BYTES_MAX]; /* the function, defined in this object; also the kernel's name */
    uint32_t argument_count;
    uint32_t argument_bytes; /* of the block: at least the end of the last argument */
    uint32_t
        groups_per_task; /* hint: consecutive groups worth handing to another thread, 0: the driver decides */
    uint32_t reserved;   /* 0 */
};

_Static_assert(sizeof(struct bw_host_argument_record) == 48, "read from objects");
_Static_assert(sizeof(struct bw_host_kernel_record) == 152, "read from objects");

#endif
