/* Data formats of typed buffer accesses: what memory holds, and what it is in registers. RDNA3 Shader ISA
 * document, section 10.7 "Data formats", table 52. */
#ifndef BW_MOCK_ISA_FORMAT_H
#define BW_MOCK_ISA_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

enum bw_format_kind {
    BW_FORMAT_UNORM,   /* 0 to 1 */
    BW_FORMAT_SNORM,   /* -1 to 1 */
    BW_FORMAT_USCALED, /* integers in memory, floats in registers */
    BW_FORMAT_SSCALED,
    BW_FORMAT_UINT,
    BW_FORMAT_SINT,
    BW_FORMAT_FLOAT,
};

struct bw_format {
    const char *name;
    uint8_t kind;    /* enum bw_format_kind */
    uint8_t bits[4]; /* of X, Y, Z, W, X lowest; 0: the format has no such component */
};

enum { BW_FORMATS = 64, BW_FORMAT_COMPONENTS = 4 };

/* The row of a format number below BW_FORMATS; number 0, INVALID, has no components. */
extern const struct bw_format bw_formats[BW_FORMATS];

unsigned bw_format_bytes(const struct bw_format *format);

/* Whether registers hold floats. */
bool bw_format_is_float(const struct bw_format *format);

/* An element in memory into registers of 32 bits, 0 for components that the format does not have; and back,
 * where numbers are clamped to what the format can hold and rounded to the nearest. */
void bw_format_load(const struct bw_format *format, const uint8_t *memory, uint32_t components[4]);
void bw_format_store(const struct bw_format *format, const uint32_t components[4], uint8_t *memory);

/* A register of 32 bits as one of 16 for D16, and back. Single precision is cut, what had fewer bits in
 * memory is rounded (section 9.3.1 "D16 instructions"). */
uint16_t bw_format_narrow(const struct bw_format *format, uint32_t component);
uint32_t bw_format_widen(const struct bw_format *format, uint16_t component);

#endif
