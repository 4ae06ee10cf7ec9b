/* What the tests of the emulator's operations establish, for the labels of mock/isa/gfx11_ops.def.
 *
 * A test that compared an operation with its reference, over all that the operation can see, says ops_prove()
 * (bit for bit) or ops_bound() (within ulps). When the whole program passed, OPS_TEST_MAIN leaves what was
 * said in BUILD/fidelity/PROGRAM.txt, one line an operation: "V_ADD_F32 0 0 0": label, bound, largest error
 * seen. fidelity_test.c lays these beside the table. A program that fails leaves no file, so that it proves
 * nothing.
 *
 * A program takes part by its name: exec_ops_*_test.c (tests/extra.cmake). */
#ifndef BW_TESTS_EXEC_PROOF_H
#define BW_TESTS_EXEC_PROOF_H

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mock/isa/inst.h"
#include "tests/check.h"

struct ops_proof {
    bool proved, bounded;
    double ulps, seen; /* bounded: what is promised, and the largest error observed */
};

static struct ops_proof ops_proofs[BW_GFX11_OP_COUNT];

/* Call it where the comparison held: results, masks and what must stay untouched, for corners and random
 * operands. */
static inline void ops_prove(uint16_t op)
{
    ops_proofs[op].proved = true;
}

static inline void ops_bound(uint16_t op, double ulps, double seen)
{
    struct ops_proof *proof = &ops_proofs[op];
    proof->bounded = true;
    proof->ulps = ulps > proof->ulps ? ulps : proof->ulps;
    proof->seen = seen > proof->seen ? seen : proof->seen;
}

static inline int ops_proofs_write(const char *program, bool passed)
{
    char path[512];
    snprintf(path, sizeof path, "%s/fidelity/%s.txt", BW_BUILD_DIR, program);
    (void)unlink(path);
    if (!passed)
        return 1;
    if (mkdir(BW_BUILD_DIR "/fidelity", 0777) && errno != EEXIST)
        return 1;
    FILE *file = fopen(path, "w");
    if (!file)
        return 1;
    static const char *const identifiers[] = {
#define OP(identifier, ...) #identifier,
#include "mock/isa/gfx11_ops.def"
#undef OP
    };
    for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
        const struct ops_proof *proof = &ops_proofs[op];
        if (proof->proved)
            fprintf(file, "%s %d 0 0\n", identifiers[op], BW_ISA_BIT_PROVED);
        if (proof->bounded)
            fprintf(file, "%s %d %g %.3g\n", identifiers[op], BW_ISA_ULP_BOUNDED, proof->ulps, proof->seen);
    }
    return fclose(file) ? 1 : 0;
}

#define OPS_TEST_MAIN(suite_name, ...)                                           \
    int main(void)                                                               \
    {                                                                            \
        static const struct bw_test tests[] = {__VA_ARGS__};                     \
        int rc = bw_test_run(suite_name, tests, sizeof tests / sizeof tests[0]); \
        return ops_proofs_write(program_invocation_short_name, rc == 0) || rc;   \
    }

#endif
