/* Reading the rows of schema_table.c. */
#include "compiler/onnx/schema.h"

#include <string.h>

/* Like strcmp. */
static int compare(struct bw_bytes a, const char *b)
{
    size_t length = strlen(b), common = a.size_bytes < length ? a.size_bytes : length;
    int order = common ? memcmp(a.data, b, common) : 0;
    return order ? order : (a.size_bytes > length) - (a.size_bytes < length);
}

const struct bw_onnx_schema *bw_onnx_schema_find(struct bw_bytes op_type, int64_t opset, bool *known)
{
    const struct bw_onnx_schemas *table = &bw_onnx_schema_table;
    uint32_t low = 0, high = table->count; /* the first row of this op or of a later one */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare(op_type, table->rows[middle].op) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    const struct bw_onnx_schema *found = NULL;
    *known = low < table->count && !compare(op_type, table->rows[low].op);
    for (; low < table->count && !compare(op_type, table->rows[low].op); low++)
        if (table->rows[low].since <= opset)
            found = &table->rows[low];
    return found;
}

bool bw_onnx_word_next(const char **list, struct bw_onnx_word *word)
{
    const char *at = *list + strspn(*list, " ");
    if (!*at)
        return false;
    *word = (struct bw_onnx_word){.name = at, .length = (uint32_t)strcspn(at, " :?*~!")};
    at += word->length;
    if (*at == ':') {
        word->kind = at[1];
        at += 2;
    }
    if (*at && *at != ' ')
        word->mark = *at++;
    *list = at;
    return true;
}

const char *bw_onnx_schema_letters(const struct bw_onnx_schema *schema, const struct bw_onnx_word *parameter)
{
    if (*parameter->name == '=')
        return parameter->name + 1;
    for (const char *at = schema->types; *at; at += strspn(at, " ")) {
        if (!strncmp(at, parameter->name, parameter->length) && at[parameter->length] == '=')
            return at + parameter->length + 1;
        at += strcspn(at, " ");
    }
    return NULL;
}

bool bw_onnx_letters_have(const char *letters, char letter)
{
    return memchr(letters, letter, strcspn(letters, " ?*~")) != NULL;
}
