/* docs/fidelity.md as text, from the table, from what the tests established and from fidelity_notes.h. */
#ifndef BW_TESTS_FIDELITY_DOC_H
#define BW_TESTS_FIDELITY_DOC_H

#include <fnmatch.h>
#include <math.h>

#include "base/text.h"
#include "mock/isa/inst.h"
#include "tests/unit/mock/isa/exec_proof.h"
#include "tests/unit/mock/isa/exec_run.h"
#include "tests/unit/mock/isa/fidelity_notes.h"

#define DOC_COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *const identifiers[] = {
#define OP(identifier, ...) #identifier,
#include "mock/isa/gfx11_ops.def"
#undef OP
};

struct doc {
    struct bw_text text;
    const struct bw_isa *isa;
    bool refused[BW_GFX11_OP_COUNT]; /* whatever the operands */
};

static inline bool doc_names(const char *patterns, const char *identifier)
{
    char copy[256], *rest = copy;
    snprintf(copy, sizeof copy, "%s", patterns);
    for (char *pattern; (pattern = strsep(&rest, " ")) != NULL;) {
        if (fnmatch(pattern, identifier, 0) == 0)
            return true;
    }
    return false;
}

/* The note of an operation; -1: none. */
static inline int doc_note(unsigned op)
{
    for (size_t i = 0; i < DOC_COUNT(fidelity_notes); i++) {
        if (doc_names(fidelity_notes[i].patterns, identifiers[op]))
            return (int)i;
    }
    return -1;
}

static inline const char *doc_format(unsigned format)
{
    static const char *const names[] = {
        [BW_GFX11_SOP1] = "SOP1",     [BW_GFX11_SOP2] = "SOP2",
        [BW_GFX11_SOPC] = "SOPC",     [BW_GFX11_SOPK] = "SOPK",
        [BW_GFX11_SOPP] = "SOPP",     [BW_GFX11_SMEM] = "SMEM",
        [BW_GFX11_VOP1] = "VOP1",     [BW_GFX11_VOP2] = "VOP2",
        [BW_GFX11_VOPC] = "VOPC",     [BW_GFX11_VOP3] = "VOP3",
        [BW_GFX11_VOP3SD] = "VOP3SD", [BW_GFX11_VOP3P] = "VOP3P",
        [BW_GFX11_DS] = "DS",         [BW_GFX11_FLAT] = "FLAT, GLOBAL, SCRATCH",
        [BW_GFX11_MUBUF] = "MUBUF",   [BW_GFX11_MTBUF] = "MTBUF",
        [BW_GFX11_LDSDIR] = "LDSDIR",
    };
    return format < DOC_COUNT(names) ? names[format] : NULL;
}

enum doc_class { DOC_PROVED, DOC_BOUNDED, DOC_UNKNOWN, DOC_REFUSED, DOC_CLASSES };

static inline enum doc_class doc_class(const struct doc *doc, unsigned op)
{
    static const enum doc_class classes[] = {DOC_PROVED, DOC_BOUNDED, DOC_UNKNOWN};
    return doc->refused[op] ? DOC_REFUSED : classes[bw_gfx11_ops[op].fidelity];
}

/* A paragraph or list item, filled to the width of a page; what follows its first line is indented. */
static inline void doc_fill(struct bw_text *text, const char *indent, const char *words)
{
    enum { WIDTH = 110 };
    size_t column = 0;
    while (*words) {
        size_t length = strcspn(words, " ");
        if (column && column + 1 + length > WIDTH) {
            bw_text_add(text, "\n%s", indent);
            column = strlen(indent);
        } else if (column) {
            bw_text_add(text, " ");
            column++;
        }
        bw_text_add(text, "%.*s", (int)length, words);
        column += length;
        words += length + strspn(words + length, " ");
    }
    bw_text_add(text, "\n");
}

static inline const char *doc_prefix(unsigned op)
{
    return bw_gfx11_ops[op].format == BW_GFX11_FLAT ? "flat_" : "";
}

/* "head N: mnemonics", of the operations that `wanted` names; nothing when there are none. */
static inline void doc_operations(struct doc *doc, const char *head,
                                  bool (*wanted)(const struct doc *doc, unsigned op, int what), int what)
{
    struct bw_text line = {0}, names = {0};
    unsigned count = 0;
    for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
        if (wanted(doc, op, what))
            bw_text_add(&names, "%s%s%s", count++ ? ", " : "", doc_prefix(op), bw_gfx11_ops[op].name);
    }
    if (count) {
        bw_text_add(&line, "%s (%u): %s", head, count, names.data);
        doc_fill(&doc->text, "  ", line.data);
    }
    bw_text_free(&line);
    bw_text_free(&names);
}

static inline bool doc_is_proved_in(const struct doc *doc, unsigned op, int format)
{
    return bw_gfx11_ops[op].format == format && doc_class(doc, op) == DOC_PROVED;
}

static inline bool doc_is_noted(const struct doc *doc, unsigned op, int note)
{
    return doc_class(doc, op) == DOC_UNKNOWN && doc_note(op) == note;
}

static inline bool doc_is_refused(const struct doc *doc, unsigned op, int unused)
{
    (void)unused;
    return doc->refused[op];
}

static inline void doc_summary(struct doc *doc)
{
    unsigned total[DOC_CLASSES] = {0};
    bw_text_add(
        &doc->text,
        "| format | bit-proved | ulp-bounded | unknown | refused |\n| --- | --: | --: | --: | --: |\n");
    for (unsigned format = 0; format < BW_GFX11_FORMAT_COUNT; format++) {
        unsigned counts[DOC_CLASSES] = {0}, any = 0;
        for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
            if (bw_gfx11_ops[op].format == format) {
                counts[doc_class(doc, op)]++;
                total[doc_class(doc, op)]++;
                any++;
            }
        }
        if (any)
            bw_text_add(&doc->text, "| %s | %u | %u | %u | %u |\n", doc_format(format), counts[0], counts[1],
                        counts[2], counts[3]);
    }
    bw_text_add(&doc->text, "| all %u | %u | %u | %u | %u |\n", (unsigned)BW_GFX11_OP_COUNT, total[0],
                total[1], total[2], total[3]);
}

static inline void doc_bounds(struct doc *doc)
{
    bw_text_add(&doc->text, "| operation | bound, ulp | largest seen |\n| --- | --: | --: |\n");
    for (unsigned op = 0; op < BW_GFX11_OP_COUNT; op++) {
        if (doc_class(doc, op) == DOC_BOUNDED)
            bw_text_add(&doc->text, "| %s | %g | %.2f |\n", bw_gfx11_ops[op].name, ops_proofs[op].ulps,
                        ops_proofs[op].seen);
    }
}

static inline unsigned doc_words(const struct fidelity_refusal *refusal)
{
    unsigned count = DOC_COUNT(refusal->words);
    while (count && !refusal->words[count - 1])
        count--;
    return count;
}

static inline void doc_refusals(struct doc *doc, const struct fidelity_refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bw_text line = {0};
        bw_text_add(&line, "- %s: `", refusals[i].what);
        unsigned words = doc_words(&refusals[i]);
        for (unsigned at = 0; at < words;) {
            bw_text_add(&line, "%s", at ? "; " : "");
            unsigned bytes =
                bw_isa_disassemble(doc->isa, refusals[i].words + at, 4ull * (words - at), 0, &line);
            if (!bytes)
                bw_text_add(&line, "0x%08x", refusals[i].words[at]);
            at += bytes ? bytes / 4 : 1;
        }
        bw_text_add(&line, "`");
        doc_fill(&doc->text, "  ", line.data);
        bw_text_free(&line);
    }
}

static inline void doc_list(struct doc *doc, const char *const *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct bw_text line = {0};
        bw_text_add(&line, "- %s", items[i]);
        doc_fill(&doc->text, "  ", line.data);
        bw_text_free(&line);
    }
}

static inline void doc_labels(struct doc *doc)
{
    doc_summary(doc);
    bw_text_add(&doc->text, "\n## Bit-proved\n\n");
    for (unsigned format = 0; format < BW_GFX11_FORMAT_COUNT; format++) {
        char head[64];
        snprintf(head, sizeof head, "- **%s**", doc_format(format) ? doc_format(format) : "");
        doc_operations(doc, head, doc_is_proved_in, (int)format);
    }
    bw_text_add(&doc->text, "\n## ULP-bounded\n\n");
    doc_bounds(doc);
    bw_text_add(&doc->text,
                "\n## Unknown\n\nExecuted; compiled kernels and the tests that the notes name use them.\n\n");
    for (size_t i = 0; i < DOC_COUNT(fidelity_notes); i++) {
        char head[640];
        snprintf(head, sizeof head, "- %s", fidelity_notes[i].reason);
        doc_operations(doc, head, doc_is_noted, (int)i);
    }
}

static inline void doc_write(struct doc *doc)
{
    struct bw_text *text = &doc->text;
    bw_text_add(
        text,
        "# What the gfx1100 emulator gets right\n\n"
        "<!-- written by `ninja fidelity` from mock/isa/gfx11_ops.def and the tests; do not edit -->\n\n");
    doc_fill(text, "",
             "Every operation of the emulator (`mock/isa`) has a label in `mock/isa/gfx11_ops.def`. The "
             "label is what tests "
             "establish: `unit.mock.isa.exec_*` compare operations with references written from AMD's RDNA3 "
             "Shader ISA "
             "document, in drawn forms (encodings, DPP, modifiers, MODE, EXEC, both wave sizes) over corner "
             "cases and random "
             "operands; `unit.mock.isa.fidelity` fails when a label says more, or less, than the tests do, "
             "and when this file "
             "says something else. No board was at hand: nothing here ran on silicon.");
    bw_text_add(text, "\n");
    static const char *const meanings[] = {
        "**bit-proved**: every bit of results, masks and of what must not change equals the reference.",
        "**ulp-bounded**: corner cases equal the reference, other results lie within the documented bound.",
        "**unknown**: executed, but documents do not settle the result, or no test of this operation exists.",
        "**refused**: ends the dispatch with the operation's name.",
    };
    doc_list(doc, meanings, DOC_COUNT(meanings));
    bw_text_add(text, "\n");
    doc_labels(doc);
    bw_text_add(text, "\n## Refused by name\n\n");
    doc_operations(doc, "- Operations", doc_is_refused, 0);
    doc_refusals(doc, fidelity_refusals, DOC_COUNT(fidelity_refusals));
    bw_text_add(text, "\n## Stricter than hardware\n\n");
    doc_refusals(doc, fidelity_strict, DOC_COUNT(fidelity_strict));
    bw_text_add(text, "\n## Readings\n\nWhere documents are silent or contradict each other.\n\n");
    doc_list(doc, fidelity_readings, DOC_COUNT(fidelity_readings));
    bw_text_add(text, "\n## Not modelled\n\n");
    doc_list(doc, fidelity_missing, DOC_COUNT(fidelity_missing));
}

#endif
