/* Atomic operations of memory and LDS, as the translator names them in a uop. */
#ifndef BW_MOCK_ISA_ATOMIC_H
#define BW_MOCK_ISA_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

enum bw_atomic {
    BW_ATOMIC_SWAP,
    BW_ATOMIC_CMPSWAP,
    BW_ATOMIC_ADD,
    BW_ATOMIC_SUB,
    BW_ATOMIC_RSUB,
    BW_ATOMIC_CSUB, /* saturates at 0 */
    BW_ATOMIC_MIN_I,
    BW_ATOMIC_MIN_U,
    BW_ATOMIC_MAX_I,
    BW_ATOMIC_MAX_U,
    BW_ATOMIC_AND,
    BW_ATOMIC_OR,
    BW_ATOMIC_XOR,
    BW_ATOMIC_INC, /* wraps to 0 at the data */
    BW_ATOMIC_DEC, /* wraps to the data at 0 */
    BW_ATOMIC_MSKOR,
    BW_ATOMIC_WRAP,
    BW_ATOMIC_CMPSWAP_F,
    BW_ATOMIC_MIN_F,
    BW_ATOMIC_MAX_F,
    BW_ATOMIC_ADD_F,
};

/* uop->f: the operation, the address form and the shape. */
#define BW_ATOMIC_CODE(atomic, form) ((atomic) | (form) << 8)
enum {
    BW_ATOMIC_WIDE = 1 << 16,           /* 64-bit elements */
    BW_ATOMIC_RETURN = 1 << 17,         /* the old value goes to uop->d */
    BW_ATOMIC_DATA2_SEPARATE = 1 << 18, /* second data in its own register at uop->c, as DS has it */
    BW_BUFFER_INDEX = 1 << 20,          /* of buffer uops: what the address registers hold */
    BW_BUFFER_OFFSET = 1 << 21,
};
/* uop->f of a buffer uop: an element or an atomic operation, which have the low byte, and where addresses
 * come from. With a data format: how many components, in registers of which kind, and the format's number, 0
 * when the descriptor has it. */
#define BW_BUFFER_FORMAT_CODE(count, format) ((count) | (format) << 8)
enum {
    BW_BUFFER_D16 = 1 << 3,    /* two components a register */
    BW_BUFFER_D16_HI = 1 << 4, /* one, in the high half */
};

struct bw_wave;
struct bw_uop;

/* The atomic operation that uop->f says, with the lane's data, on memory of its size and alignment; returns
 * what was there. */
uint64_t bw_atomic_perform(struct bw_wave *wave, const struct bw_uop *uop, unsigned lane, uint8_t *memory);

/* What was there into the registers at that offset, of the lanes of exec. */
void bw_atomic_return(struct bw_wave *wave, int32_t offset, uint32_t exec, const uint64_t *values, bool wide);

#endif
