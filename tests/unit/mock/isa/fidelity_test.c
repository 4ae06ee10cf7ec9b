/* Goal: the label of every row of mock/isa/gfx11_ops.def is what the tests of the operations establish, no
 * more and no less. BW_FIDELITY_PROGRAMS names the programs, each of which left its record (exec_proof.h);
 * ctest runs them first. */
#include "tests/unit/mock/isa/exec_proof.h"

static const char *const identifiers[] = {
#define OP(identifier, ...) #identifier,
#include "mock/isa/gfx11_ops.def"
#undef OP
};

static int op_by_name(const char *name)
{
    for (int op = 0; op < BW_GFX11_OP_COUNT; op++) {
        if (strcmp(identifiers[op], name) == 0)
            return op;
    }
    return -1;
}

static bool read_record(const char *program)
{
    char path[512], name[64];
    int label;
    double ulps, seen;
    snprintf(path, sizeof path, "%s/fidelity/%s.txt", BW_BUILD_DIR, program);
    FILE *file = fopen(path, "r");
    if (!file) {
        printf("\n    %s did not pass: no record of it\n", program);
        return false;
    }
    bool ok = true;
    while (fscanf(file, "%63s %d %lg %lg", name, &label, &ulps, &seen) == 4) {
        int op = op_by_name(name);
        ok = op >= 0 && ok;
        if (op >= 0 && label == BW_ISA_BIT_PROVED)
            ops_prove((uint16_t)op);
        else if (op >= 0)
            ops_bound((uint16_t)op, ulps, seen);
    }
    fclose(file);
    return ok;
}

static void test_records(void)
{
    char programs[] = BW_FIDELITY_PROGRAMS, *rest = programs;
    for (char *program; (program = strsep(&rest, ",")) != NULL;)
        BW_TRUE(read_record(program));
}

/* The label that the tests give; a bound says less than a proof, so that having both counts as a bound. */
static enum bw_isa_fidelity established(unsigned op)
{
    const struct ops_proof *proof = &ops_proofs[op];
    return proof->bounded ? BW_ISA_ULP_BOUNDED : proof->proved ? BW_ISA_BIT_PROVED : BW_ISA_UNKNOWN;
}

static void test_labels(void)
{
    static const char *const labels[] = {"BW_ISA_BIT_PROVED", "BW_ISA_ULP_BOUNDED", "BW_ISA_UNKNOWN"};
    unsigned differences = 0;
    for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
        enum bw_isa_fidelity label = (enum bw_isa_fidelity)bw_gfx11_ops[op].fidelity;
        if (label == established(op))
            continue;
        printf("\n    %s: gfx11_ops.def says %s, the tests %s", identifiers[op], labels[label],
               labels[established(op)]);
        differences++;
    }
    BW_EQ(differences, 0);
}

BW_TEST_MAIN("isa fidelity", {"every program passed and left its record", test_records},
             {"labels are what the tests establish", test_labels})
