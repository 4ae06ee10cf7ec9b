/* Text: normalising and counting n-grams, on the host. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static bool same_bytes(struct bw_bytes a, struct bw_bytes b, bool cased)
{
    if (a.size_bytes != b.size_bytes)
        return false;
    for (uint64_t i = 0; i < a.size_bytes; i++)
        if (cased ? a.data[i] != b.data[i] : tolower(a.data[i]) != tolower(b.data[i]))
            return false;
    return true;
}

static bool is_stopword(const struct bw_onnx_attribute *stopwords, struct bw_bytes word, bool cased)
{
    for (uint64_t i = 0; stopwords && i < stopwords->count; i++)
        if (same_bytes(stopwords->strings[i], word, cased))
            return true;
    return false;
}

/* ASCII case only: that of other letters depends on a locale. */
static struct bw_bytes with_case(struct bw_onnx_call *c, struct bw_bytes word, bool upper)
{
    uint8_t *copy = bw_onnx_alloc(c, word.size_bytes + 1, 1);
    for (uint64_t i = 0; copy && i < word.size_bytes; i++)
        copy[i] = (uint8_t)(upper ? toupper(word.data[i]) : tolower(word.data[i]));
    return (struct bw_bytes){copy, copy ? word.size_bytes : 0};
}

/* Input [C] or [1, C]; when nothing is left, one empty string. */
static int string_normalizer(struct bw_onnx_call *c)
{
    bool cased = bw_onnx_int(c, "is_case_sensitive", 0),
         upper = bw_onnx_string_is(c, "case_change_action", "UPPER", false);
    bool lower = bw_onnx_string_is(c, "case_change_action", "LOWER", false);
    const struct bw_onnx_attribute *stopwords = bw_onnx_attribute(c, "stopwords", BW_ONNX_ATTR_STRINGS);
    if (!bw_onnx_has(c, 0) || c->inputs[0]->kind != BW_VALUE_STRINGS || bw_onnx_realize(c, 0))
        return bw_onnx_fail(c, -EINVAL, "input is no tensor of strings");
    const struct bw_onnx_value *x = c->inputs[0];
    if (x->rank < 1 || x->rank > 2 || (x->rank == 2 && x->dims[0] != 1))
        return bw_onnx_fail(c, -EINVAL, "input of rank %u", x->rank);
    struct bw_bytes *kept = calloc((size_t)x->elements + 1, sizeof *kept);
    int64_t dims[] = {1, 0}, count = 0;
    for (int64_t i = 0; kept && i < x->elements; i++) {
        struct bw_bytes word = ((const struct bw_bytes *)x->host)[i];
        if (!is_stopword(stopwords, word, cased))
            kept[count++] = upper || lower ? with_case(c, word, upper) : word;
    }
    dims[x->rank - 1] = count ? count : 1;
    return bw_onnx_out_value(c, 0, bw_onnx_value_strings(c->session, x->rank, dims, kept, !c->dynamic));
}

/* ---- TfIdfVectorizer ---- */

enum { OUTPUTS_MAX = 1 << 28 }; /* of all rows: a gigabyte of floats */

struct ngrams {
    struct bw_onnx_ints pool, starts,
        indexes; /* pool: all n-grams' items, by length; starts: where each length begins */
    const struct bw_onnx_attribute *words; /* the pool, when items are strings */
    const float *weights;
    int64_t shortest, longest, skip_max, outputs;
    bool counts, weighs;
};

static bool item_matches(const struct ngrams *n, const struct bw_onnx_value *x, int64_t at, uint64_t pool_at)
{
    if (n->words)
        return same_bytes(((const struct bw_bytes *)x->host)[at], n->words->strings[pool_at], true);
    return bw_onnx_host_int(x->dtype, x->host, at) == n->pool.data[pool_at];
}

/* The number of the n-gram at `at` whose items are `skip` apart, or -1. */
static int64_t ngram_find(const struct ngrams *n, const struct bw_onnx_value *x, int64_t at, int64_t length,
                          int64_t skip)
{
    uint64_t pool_count = n->words ? n->words->count : n->pool.count, number = 0;
    for (int64_t k = 1; k <= (int64_t)n->starts.count; k++) {
        uint64_t start = (uint64_t)n->starts.data[k - 1],
                 end = k < (int64_t)n->starts.count ? (uint64_t)n->starts.data[k] : pool_count;
        for (uint64_t p = start; p + (uint64_t)k <= end; p += (uint64_t)k, number++) {
            bool same = k == length;
            for (int64_t i = 0; same && i < k; i++)
                same = item_matches(n, x, at + i * skip, p + (uint64_t)i);
            if (same)
                return (int64_t)number;
        }
    }
    return -1;
}

static void row_count(const struct ngrams *n, const struct bw_onnx_value *x, int64_t first, int64_t items,
                      float *row)
{
    for (int64_t skip = 1; skip <= n->skip_max + 1 && skip <= items; skip++)
        for (int64_t length = n->shortest; length <= n->longest && (length - 1) * skip < items; length++)
            for (int64_t at = 0; at + (length - 1) * skip < items && !(length == 1 && skip > 1); at++) {
                int64_t number = ngram_find(n, x, first + at, length, skip);
                if (number >= 0 && (uint64_t)number < n->indexes.count && n->indexes.data[number] >= 0 &&
                    n->indexes.data[number] < n->outputs)
                    row[n->indexes.data[number]] += 1;
            }
    for (uint64_t i = 0; i < n->indexes.count; i++) {
        int64_t at = n->indexes.data[i];
        if (at < 0 || at >= n->outputs || row[at] == 0)
            continue;
        float weight = n->weighs && n->weights ? n->weights[i] : 1;
        row[at] = (n->counts ? row[at] : 1) * weight;
    }
}

static int ngrams_read(struct bw_onnx_call *c, struct ngrams *n)
{
    n->pool = bw_onnx_ints(c, "pool_int64s");
    n->words = bw_onnx_attribute(c, "pool_strings", BW_ONNX_ATTR_STRINGS);
    n->starts = bw_onnx_ints(c, "ngram_counts");
    n->indexes = bw_onnx_ints(c, "ngram_indexes");
    n->shortest = bw_onnx_int(c, "min_gram_length", 1);
    n->longest = bw_onnx_int(c, "max_gram_length", 1);
    n->skip_max = bw_onnx_int(c, "max_skip_count", 0);
    n->weighs = !bw_onnx_string_is(c, "mode", "TF", false);
    n->counts = !bw_onnx_string_is(c, "mode", "IDF", false);
    const struct bw_onnx_attribute *weights = bw_onnx_attribute(c, "weights", BW_ONNX_ATTR_FLOATS);
    n->weights = weights && weights->count == n->indexes.count ? weights->floats : NULL;
    uint64_t pool_count = n->words ? n->words->count : n->pool.count;
    for (uint64_t i = 0; i < n->starts.count; i++)
        if (n->starts.data[i] < 0 || (uint64_t)n->starts.data[i] > pool_count)
            return bw_onnx_fail(c, -EINVAL, "ngram_counts reach beyond the pool");
    bool fits = n->shortest >= 1 && n->longest >= n->shortest && n->longest < 1 << 16 && n->skip_max >= 0 &&
                n->skip_max < 1 << 16;
    for (uint64_t i = 0; i < n->indexes.count; i++) {
        fits &= n->indexes.data[i] < OUTPUTS_MAX;
        n->outputs = fits && n->indexes.data[i] >= n->outputs ? n->indexes.data[i] + 1 : n->outputs;
    }
    return c->rc  ? c->rc
           : fits ? 0
                  : bw_onnx_fail(c, -EINVAL, "n-gram lengths, skips or indexes out of range");
}

static int tf_idf_vectorizer(struct bw_onnx_call *c)
{
    struct ngrams n = {0};
    if (ngrams_read(c, &n) || bw_onnx_realize(c, 0))
        return c->rc;
    const struct bw_onnx_value *x = c->inputs[0];
    if ((x->kind == BW_VALUE_STRINGS) != (n.words != NULL) || x->rank > 2 || x->kind == BW_VALUE_SEQUENCE)
        return bw_onnx_fail(c, -EINVAL, "input and pool do not fit");
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, items = x->rank ? x->dims[x->rank - 1] : 1,
            dims[] = {rows, n.outputs}, outputs;
    if (rows > OUTPUTS_MAX || __builtin_mul_overflow(rows, n.outputs, &outputs) || outputs > OUTPUTS_MAX)
        return bw_onnx_fail(c, -E2BIG, "%lld rows of %lld outputs", (long long)rows, (long long)n.outputs);
    float *result = calloc((size_t)outputs + 1, sizeof *result);
    for (int64_t row = 0; result && items && outputs && row < rows; row++)
        row_count(&n, x, row * items, items, result + row * n.outputs);
    return bw_onnx_out_array(c, 0, BW_F32, x->rank == 2 ? 2 : 1, x->rank == 2 ? dims : dims + 1, result);
}

static const struct bw_onnx_op rows[] = {
    {"StringNormalizer", 10, .function = string_normalizer},
    {"TfIdfVectorizer", 9, .function = tf_idf_vectorizer},
};

const struct bw_onnx_ops bw_onnx_ops_string = {rows, BW_COUNT_OF(rows)};
