/* Command templates with patches: see driver.h. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/driver.h"

/* First allocation: a tiny kernel launch is about 50 words with 2 patches, so most buffers of a test grow at
 * most once. */
enum { WORDS_FIRST = 256, PATCHES_FIRST = 32 };

/* Makes room for one more element of *data; 0 or the sticky error. */
static int encoder_grow(struct bw_encoder *encoder, void **data, uint32_t count, uint32_t *capacity,
                        uint32_t first, size_t element_bytes)
{
    assert(count <= *capacity);
    if (encoder->failed || count < *capacity)
        return encoder->failed;
    uint64_t wanted = *capacity ? (uint64_t)*capacity * 2 : first;
    void *grown = wanted <= UINT32_MAX ? realloc(*data, (size_t)wanted * element_bytes) : NULL;
    if (!grown)
        return encoder->failed = -ENOMEM;
    *data = grown;
    *capacity = (uint32_t)wanted;
    return 0;
}

void bw_encoder_word(struct bw_encoder *encoder, uint32_t word)
{
    if (encoder_grow(encoder, (void **)&encoder->words, encoder->count, &encoder->capacity, WORDS_FIRST,
                     sizeof(uint32_t)))
        return;
    encoder->words[encoder->count++] = word;
}

void bw_encoder_patch(struct bw_encoder *encoder, const struct bw_patch *patch)
{
    if (encoder_grow(encoder, (void **)&encoder->patches, encoder->patch_count, &encoder->patch_capacity,
                     PATCHES_FIRST, sizeof *encoder->patches))
        return;
    encoder->patches[encoder->patch_count++] = *patch;
}

void bw_encoder_operand32(struct bw_encoder *encoder, struct bw_operand operand, unsigned shift,
                          uint32_t mask, uint32_t base)
{
    assert(shift < 64);
    assert((base & mask) == 0); /* patches are or-ed in */
    if (operand.symbol == BW_SYMBOL_NONE) {
        bw_encoder_word(encoder, base | ((uint32_t)(operand.addend >> shift) & mask));
        return;
    }
    bw_encoder_patch(encoder, &(struct bw_patch){encoder->count, operand.symbol, operand.addend,
                                                 (uint8_t)shift, false, mask});
    bw_encoder_word(encoder, base);
}

void bw_encoder_operand64(struct bw_encoder *encoder, struct bw_operand operand, unsigned shift)
{
    assert(shift < 64);
    if (operand.symbol == BW_SYMBOL_NONE) {
        bw_encoder_word(encoder, bw_lo32(operand.addend >> shift));
        bw_encoder_word(encoder, bw_hi32(operand.addend >> shift));
        return;
    }
    bw_encoder_patch(encoder, &(struct bw_patch){encoder->count, operand.symbol, operand.addend,
                                                 (uint8_t)shift, true, UINT32_MAX});
    bw_encoder_word(encoder, 0);
    bw_encoder_word(encoder, 0);
}

void bw_encoder_free(struct bw_encoder *encoder)
{
    free(encoder->words);
    free(encoder->patches);
    free(encoder->state);
    memset(encoder, 0, sizeof *encoder);
}
