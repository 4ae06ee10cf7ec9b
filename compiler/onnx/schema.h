/* What ONNX says of an op: how many inputs and outputs it takes, of which types, and its attributes. The
 * table (schema_table.c) has a row for each opset in which an op changed; models are held to it when they are
 * loaded (check.c), element types when they are imported (types.c). */
#ifndef BW_COMPILER_ONNX_SCHEMA_H
#define BW_COMPILER_ONNX_SCHEMA_H

#include <bellwire/dtype.h>

#include "compiler/onnx/proto.h"

enum {
    BW_ONNX_OPSET_MAX = 27, /* ONNX 1.22: each later version of an op is a row to read and to implement */
    BW_ONNX_OPSET_TRAINING_MAX = 1, /* of ai.onnx.preview.training */
    BW_ONNX_IR_VERSION_MAX = 13,    /* ONNX 1.22; no version changed how a graph is computed */
    BW_ONNX_IR_VERSION_OPSETS = 3,  /* the first whose files must say which opsets they use */
};

/* Parameters are a list like "T T? =l? V~": the name of a type, or = and the letters of the types it may
 * have; then ? when it may be left out, * for one or more of one type, ~ for one or more of any types.
 * Attributes are a list like "axis:i! mode:s": the name, a letter for its kind (f, i, s: one number or text;
 * F, I, S: a list; t: tensor, g: graph, p: sparse tensor, y: type), ! when it must be there. Types are a list
 * like "T=df Tind=il": the letters of bw_onnx_letter_of, and # for what is no tensor. */
struct bw_onnx_schema {
    const char *op;
    uint32_t since; /* opset */
    uint32_t inputs_min, outputs_min;
    const char *inputs, *outputs, *attributes, *types; /* NULL: removed in this opset */
};

struct bw_onnx_schemas {
    const struct bw_onnx_schema *rows; /* ordered by op, then opset */
    uint32_t count;
};
extern const struct bw_onnx_schemas bw_onnx_schema_table;

/* The row of an op that holds in this opset, or NULL. *known: there is a row in some opset. */
const struct bw_onnx_schema *bw_onnx_schema_find(struct bw_bytes op_type, int64_t opset, bool *known);

/* One word of a list: its name and the mark after it (0: none). */
struct bw_onnx_word {
    const char *name;
    uint32_t length; /* of the name */
    char mark, kind; /* kind: the letter after a colon */
};
/* The first word at *list, which moves on. False at the end. */
bool bw_onnx_word_next(const char **list, struct bw_onnx_word *word);
/* Letters of the types that a parameter may have, ended by a blank or 0; NULL: any. */
const char *bw_onnx_schema_letters(const struct bw_onnx_schema *schema, const struct bw_onnx_word *parameter);
bool bw_onnx_letters_have(const char *letters, char letter);
char bw_onnx_letter_of(enum bw_dtype dtype); /* BW_VOID: that of strings */

#endif
