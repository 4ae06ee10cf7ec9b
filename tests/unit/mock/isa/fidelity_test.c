/* Goal: the label of every row of mock/isa/gfx11_ops.def is what the tests of the operations establish, no
 * more and no less, and docs/fidelity.md says so. BW_FIDELITY_PROGRAMS names the programs, each of which left
 * its record (exec_proof.h); ctest runs them first. With --write the document is written instead. */
#include "tests/unit/mock/isa/fidelity_doc.h"
#include "tests/unit/mock/isa/fidelity_plain.h"

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

static bool read_records(void)
{
    char programs[] = BW_FIDELITY_PROGRAMS, *rest = programs;
    bool ok = true;
    for (char *program; (program = strsep(&rest, ",")) != NULL;)
        ok = read_record(program) && ok;
    return ok;
}

static void test_records(void)
{
    BW_TRUE(read_records());
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

static enum bw_isa_status run_words(struct exec_machine *machine, const uint32_t *words, unsigned count)
{
    enum { S_ENDPGM = 0xbfb00000 };
    uint32_t code[32] = {0};
    memcpy(code, words, count * sizeof *words);
    for (unsigned i = count; i < DOC_COUNT(code); i++)
        code[i] = S_ENDPGM;
    exec_put_code(machine, code, sizeof code);
    machine->generation++;
    return exec_run(machine);
}

/* Which operations the emulator does not have, whatever their operands. */
static bool find_refused(struct exec_machine *machine, struct doc *doc)
{
    for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
        uint32_t words[PLAIN_WORDS];
        unsigned count = plain_instruction(op, words);
        if (!count) {
            printf("\n    %s: no plain instruction", identifiers[op]);
            return false;
        }
        static const char text[] = "operation not emulated: ";
        doc->refused[op] = run_words(machine, words, count) == BW_ISA_UNSUPPORTED &&
                           strncmp(machine->result.text, text, sizeof text - 1) == 0;
    }
    return true;
}

static bool expect_refusals(struct exec_machine *machine, const struct fidelity_refusal *refusals,
                            size_t count)
{
    bool ok = true;
    for (size_t i = 0; i < count; i++) {
        machine->dispatch.wave_size = refusals[i].wave_size;
        enum bw_isa_status status = run_words(machine, refusals[i].words, doc_words(&refusals[i]));
        if (status != refusals[i].status) {
            printf("\n    %s: ended with %d (%s), expected %d", refusals[i].what, status,
                   machine->result.text, refusals[i].status);
            ok = false;
        }
    }
    return ok;
}

static void test_refusals(void)
{
    struct exec_machine machine;
    if (BW_EQ(exec_machine_init(&machine, 1), 0)) {
        BW_TRUE(expect_refusals(&machine, fidelity_refusals, DOC_COUNT(fidelity_refusals)));
        BW_TRUE(expect_refusals(&machine, fidelity_strict, DOC_COUNT(fidelity_strict)));
    }
    exec_machine_free(&machine);
}

static bool open_doc(struct doc *doc)
{
    struct exec_machine machine;
    memset(doc, 0, sizeof *doc);
    bool ok = exec_machine_init(&machine, 1) == 0 && find_refused(&machine, doc);
    doc->isa = machine.isa;
    exec_machine_free(&machine);
    return ok;
}

static void test_notes(void)
{
    struct doc doc;
    unsigned wrong = 0, used[DOC_COUNT(fidelity_notes)] = {0};
    if (!BW_TRUE(open_doc(&doc)))
        return;
    for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
        if (doc_class(&doc, op) != DOC_UNKNOWN)
            continue;
        if (doc_note(op) < 0) {
            printf("\n    %s: unknown, and fidelity_notes.h does not say why", identifiers[op]);
            wrong++;
        } else {
            used[doc_note(op)]++;
        }
    }
    for (size_t i = 0; i < DOC_COUNT(fidelity_notes); i++) {
        if (!used[i] && !fidelity_notes[i].may_be_empty) {
            printf("\n    %s: a note that no unknown operation needs", fidelity_notes[i].patterns);
            wrong++;
        }
    }
    BW_EQ(wrong, 0);
}

#define DOC_PATH BW_SOURCE_DIR "/docs/fidelity.md"
enum { DOC_BYTES_MAX = 256 * 1024 };

/* Of the document: what this program writes ends where *by_hand begins, an empty text when nothing follows.
 * The caller frees what is returned; NULL: cannot be read. */
static char *read_document(const char **by_hand)
{
    char *text = malloc(DOC_BYTES_MAX);
    FILE *file = fopen(DOC_PATH, "r");
    size_t length = file && text ? fread(text, 1, DOC_BYTES_MAX - 1, file) : 0;
    if (file)
        fclose(file);
    if (!file || !text) {
        free(text);
        return NULL;
    }
    text[length] = 0;
    const char *mark = strstr(text, "<!-- by hand from here on");
    *by_hand = mark ? mark : text + length;
    return text;
}

/* The last column of the table of bounds is measured, and another libm measures a little else. */
static bool same_line(const char *a, const char *b)
{
    const double slack = 0.05;
    char name_a[64], name_b[64];
    double bound_a, bound_b, seen_a, seen_b;
    static const char row[] = "| %63s | %lg | %lg |";
    if (strcmp(a, b) == 0)
        return true;
    return sscanf(a, row, name_a, &bound_a, &seen_a) == 3 && sscanf(b, row, name_b, &bound_b, &seen_b) == 3 &&
           strcmp(name_a, name_b) == 0 && bound_a == bound_b && fabs(seen_a - seen_b) <= slack;
}

static bool same_text(char *committed, char *wanted)
{
    for (unsigned line = 1; committed || wanted; line++) {
        char *a = strsep(&committed, "\n"), *b = strsep(&wanted, "\n");
        if (!a || !b || !same_line(a, b)) {
            printf("\n    docs/fidelity.md:%u: is  %s\n    should be  %s\n    (ninja fidelity writes it)",
                   line, a ? a : "(nothing)", b ? b : "(nothing)");
            return false;
        }
    }
    return true;
}

static void test_document(void)
{
    const char *by_hand;
    char *committed = read_document(&by_hand);
    struct doc doc;
    if (!BW_TRUE(committed != NULL) || !BW_TRUE(open_doc(&doc))) {
        free(committed);
        return;
    }
    doc_write(&doc);
    committed[by_hand - committed] = 0;
    BW_TRUE(same_text(committed, doc.text.data));
    free(committed);
    bw_text_free(&doc.text);
}

static int write_document(void)
{
    const char *by_hand = "";
    char *committed = read_document(&by_hand);
    struct doc doc;
    if (!read_records() || !open_doc(&doc)) {
        free(committed);
        return 1;
    }
    doc_write(&doc);
    FILE *file = fopen(DOC_PATH, "w");
    bool ok = file && fputs(doc.text.data, file) >= 0 && fputs(by_hand, file) >= 0;
    ok = file && fclose(file) == 0 && ok;
    bw_text_free(&doc.text);
    free(committed);
    if (!ok)
        perror(DOC_PATH);
    return !ok;
}

int main(int argc, char **argv)
{
    static const struct bw_test tests[] = {
        {"every program passed and left its record", test_records},
        {"labels are what the tests establish", test_labels},
        {"every unknown operation has its reason", test_notes},
        {"what the document calls refused is refused", test_refusals},
        {"the document says what the table says", test_document},
    };
    if (argc == 2 && strcmp(argv[1], "--write") == 0)
        return write_document();
    return bw_test_run("isa fidelity", tests, DOC_COUNT(tests));
}
