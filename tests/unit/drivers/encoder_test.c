/* Goal: a template plus its patches equals what would have been encoded had the values been known. */
#include <bellwire/err.h>

#include <errno.h>

#include "base/rng.h"
#include "drivers/driver.h"
#include "tests/check.h"

static void apply(const struct bw_encoder *encoder, uint32_t *words, const uint64_t *values)
{
    memcpy(words, encoder->words, encoder->count * sizeof *words);
    for (uint32_t i = 0; i < encoder->patch_count; i++) {
        const struct bw_patch *patch = &encoder->patches[i];
        uint64_t value = (values[patch->symbol] + patch->addend) >> patch->shift;
        words[patch->word] |= (uint32_t)value & patch->mask;
        if (patch->wide)
            words[patch->word + 1] |= (uint32_t)(value >> 32);
    }
}

static void symbols_give_the_words_of_constants(void)
{
    enum { OPERANDS = 300, SYMBOLS = 7 };
    struct bw_rng rng = {3};
    uint64_t values[SYMBOLS];
    for (int i = 0; i < SYMBOLS; i++)
        values[i] = bw_rng_next(&rng);
    struct bw_encoder symbolic = {0}, constant = {0};
    for (int i = 0; i < OPERANDS; i++) {
        uint32_t symbol = (uint32_t)bw_rng_below(&rng, SYMBOLS);
        uint64_t addend = bw_rng_next(&rng);
        unsigned shift = (unsigned)bw_rng_below(&rng, 33);
        uint32_t mask = (uint32_t)bw_rng_next(&rng), base = (uint32_t)bw_rng_next(&rng) & ~mask;
        if (i % 3 == 0) {
            bw_encoder_operand64(&symbolic, bw_operand_symbol(symbol, addend), shift);
            bw_encoder_operand64(&constant, bw_operand_constant(values[symbol] + addend), shift);
        } else {
            bw_encoder_operand32(&symbolic, bw_operand_symbol(symbol, addend), shift, mask, base);
            bw_encoder_operand32(&constant, bw_operand_constant(values[symbol] + addend), shift, mask, base);
        }
        bw_encoder_word(&symbolic, 7);
        bw_encoder_word(&constant, 7);
    }
    BW_EQ(symbolic.failed, 0);
    BW_EQ(constant.patch_count, 0);
    BW_EQ(symbolic.patch_count, OPERANDS);
    if (BW_EQ(symbolic.count, constant.count)) {
        uint32_t *words = calloc(symbolic.count, sizeof *words);
        apply(&symbolic, words, values);
        BW_BYTES(words, constant.words, constant.count * sizeof *words);
        free(words);
    }
    bw_encoder_free(&symbolic);
    bw_encoder_free(&constant);
    BW_EQ(symbolic.count, 0);
}

static void failure_is_sticky(void)
{
    struct bw_encoder encoder = {.failed = -ENOMEM};
    bw_encoder_word(&encoder, 1);
    bw_encoder_operand32(&encoder, bw_operand_symbol(1, 0), 0, UINT32_MAX, 0);
    bw_encoder_operand64(&encoder, bw_operand_symbol(1, 0), 0);
    BW_EQ(encoder.count, 0);
    BW_EQ(encoder.patch_count, 0);
    BW_EQ(encoder.failed, -ENOMEM);
    bw_encoder_free(&encoder);
}

BW_TEST_MAIN("encoder", {"symbols_give_the_words_of_constants", symbols_give_the_words_of_constants},
             {"failure_is_sticky", failure_is_sticky})
