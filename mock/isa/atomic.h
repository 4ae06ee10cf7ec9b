/* Atomic operations of memory and LDS, as the translator names them in a uop. */
#ifndef BW_MOCK_ISA_ATOMIC_H
#define BW_MOCK_ISA_ATOMIC_H

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
};

#endif
