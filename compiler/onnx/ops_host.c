/* Ops whose result's shape depends on values, or whose work is a search: computed on the host from realised
 * inputs. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "compiler/onnx/ops.h"

static int no_memory(struct bw_onnx_call *c)
{
    return bw_onnx_fail(c, -ENOMEM, "no memory");
}

/* Positions of what is not zero, in row-major order: [rank, count] */
static int nonzero(struct bw_onnx_call *c)
{
    if (bw_onnx_realize_count(c, 0))
        return c->rc;
    const struct bw_onnx_value *x = c->inputs[0];
    int64_t count = 0, rank = x->rank, at = 0;
    for (int64_t i = 0; i < x->elements; i++)
        count += bw_onnx_host_double(x->dtype, x->host, i) != 0;
    int64_t dims[] = {rank, count}, *positions = calloc((size_t)(rank * count) + 1, sizeof *positions);
    for (int64_t i = 0; positions && i < x->elements; i++) {
        if (bw_onnx_host_double(x->dtype, x->host, i) == 0)
            continue;
        int64_t rest = i;
        for (int64_t axis = rank - 1; axis >= 0; axis--) {
            positions[axis * count + at] = rest % x->dims[axis];
            rest /= x->dims[axis];
        }
        at++;
    }
    return bw_onnx_out_array(c, 0, BW_I64, 2, dims, positions);
}

/* Indices of true conditions, then a gather: the data themselves stay where they are. */
static int compress(struct bw_onnx_call *c)
{
    bw_tensor x = bw_onnx_in(c, 0);
    bool flat = !bw_onnx_attribute(c, "axis", BW_ONNX_ATTR_INT);
    int64_t whole[] = {bw_tensor_elements(c->g, x)};
    if (flat)
        x = bw_tensor_reshape(c->g, x, 1, whole);
    uint32_t axis = bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), bw_tensor_rank(c->g, x));
    if (bw_onnx_realize_count(c, 1))
        return c->rc;
    const struct bw_onnx_value *condition = c->inputs[1];
    int64_t size = bw_tensor_dims(c->g, x)[axis], length = condition->elements, count = 0;
    if (condition->rank != 1 || length > size)
        return bw_onnx_fail(c, -EINVAL, "%lld conditions of rank %u for %lld elements", (long long)length,
                            condition->rank, (long long)size);
    int64_t *chosen = calloc((size_t)length + 1, sizeof *chosen);
    for (int64_t i = 0; chosen && i < length; i++)
        if (bw_onnx_host_int(condition->dtype, condition->host, i))
            chosen[count++] = i;
    struct bw_onnx_value *index = bw_onnx_value_host(c->session, BW_I64, 1, &count, chosen, !c->dynamic);
    if (!index)
        return no_memory(c);
    return bw_onnx_out(c, 0, bw_onnx_take(c, x, axis, bw_onnx_tensor_of(c->session, index)));
}

/* ---- Unique ---- */

enum { SLICES_MAX = 1 << 26 }; /* each takes some 50 bytes, also if it has no elements */

struct slices {
    const struct bw_onnx_value *x;
    int64_t before, count, after; /* x as [before, count, after]: slices along the middle */
};

static int element_compare(const struct bw_onnx_value *x, int64_t a, int64_t b)
{
    if (bw_dtype_is_float(x->dtype)) {
        double left = bw_onnx_host_double(x->dtype, x->host, a),
               right = bw_onnx_host_double(x->dtype, x->host, b);
        bool none = isnan(left), other_none = isnan(right); /* NaN is one value, the largest */
        return none || other_none ? none - other_none : (left > right) - (left < right);
    }
    int64_t left = bw_onnx_host_int(x->dtype, x->host, a), right = bw_onnx_host_int(x->dtype, x->host, b);
    return (left > right) - (left < right);
}

static int slice_compare(const struct slices *s, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < s->before * s->after; i++) {
        int64_t row = i / s->after * s->count, column = i % s->after;
        int order = element_compare(s->x, (row + a) * s->after + column, (row + b) * s->after + column);
        if (order)
            return order;
    }
    return 0;
}

static int slice_order(const void *a, const void *b, void *slices)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    int order = slice_compare(slices, x, y);
    return order ? order : (x > y) - (x < y);
}

static int index_order(const void *a, const void *b, void *groups)
{
    const int64_t *first = groups;
    int64_t x = first[*(const int64_t *)a], y = first[*(const int64_t *)b];
    return (x > y) - (x < y);
}

struct unique {
    int64_t *order;  /* slices, sorted */
    int64_t *group;  /* by slice: its group */
    int64_t *first;  /* by group: first slice */
    int64_t *counts; /* by group */
    int64_t *ranked; /* groups in the order of the result */
    int64_t *place;  /* by group: place in the result */
    int64_t groups;
};

static bool unique_find(struct unique *u, struct slices *s, bool sorted)
{
    size_t n = (size_t)s->count + 1;
    int64_t **lists[] = {&u->order, &u->group, &u->first, &u->counts, &u->ranked, &u->place};
    for (size_t i = 0; i < BW_COUNT_OF(lists); i++)
        if (!(*lists[i] = calloc(n, sizeof **lists[i])))
            return false;
    for (int64_t i = 0; i < s->count; i++)
        u->order[i] = i;
    qsort_r(u->order, (size_t)s->count, sizeof *u->order, slice_order, s);
    for (int64_t i = 0; i < s->count; i++) {
        bool same = i && !slice_compare(s, u->order[i - 1], u->order[i]);
        if (!same)
            u->first[u->groups++] = u->order[i];
        u->group[u->order[i]] = u->groups - 1;
        u->counts[u->groups - 1]++;
    }
    for (int64_t i = 0; i < u->groups; i++)
        u->ranked[i] = i;
    if (!sorted) /* in the order in which they first occur */
        qsort_r(u->ranked, (size_t)u->groups, sizeof *u->ranked, index_order, u->first);
    for (int64_t i = 0; i < u->groups; i++)
        u->place[u->ranked[i]] = i;
    return true;
}

static int unique_out(struct bw_onnx_call *c, const struct unique *u, const struct slices *s)
{
    int64_t *firsts = calloc((size_t)u->groups + 1, sizeof *firsts),
            *counts = calloc((size_t)u->groups + 1, sizeof *counts);
    int64_t *inverse = calloc((size_t)s->count + 1, sizeof *inverse);
    for (int64_t i = 0; firsts && counts && i < u->groups; i++) {
        firsts[i] = u->first[u->ranked[i]];
        counts[i] = u->counts[u->ranked[i]];
    }
    for (int64_t i = 0; inverse && i < s->count; i++)
        inverse[i] = u->place[u->group[i]];
    int rc = bw_onnx_out_array(c, 1, BW_I64, 1, &u->groups, firsts);
    int more = bw_onnx_out_array(c, 2, BW_I64, 1, &s->count, inverse);
    int last = bw_onnx_out_array(c, 3, BW_I64, 1, &u->groups, counts);
    return rc ? rc : more ? more : last;
}

static int unique(struct bw_onnx_call *c)
{
    bool flat = !bw_onnx_attribute(c, "axis", BW_ONNX_ATTR_INT), sorted = bw_onnx_int(c, "sorted", 1);
    if (bw_onnx_realize_count(c, 0))
        return c->rc;
    if (c->inputs[0]->kind != BW_VALUE_ARRAY)
        return bw_onnx_fail(c, -ENOTSUP, "strings");
    struct slices s = {.x = c->inputs[0], .before = 1, .after = 1, .count = c->inputs[0]->elements};
    uint32_t axis = flat ? 0 : bw_onnx_axis(c, bw_onnx_int(c, "axis", 0), s.x->rank),
             rank = flat ? 1 : s.x->rank;
    if (c->rc)
        return c->rc;
    int64_t dims[BW_TENSOR_RANK_MAX] = {0};
    for (uint32_t i = 0; !flat && i < rank; i++) {
        dims[i] = s.x->dims[i];
        *(i < axis ? &s.before : i > axis ? &s.after : &s.count) *= i == axis ? 1 : dims[i];
    }
    s.count = flat ? s.count : dims[axis];
    if (s.count > SLICES_MAX)
        return bw_onnx_fail(c, -E2BIG, "%lld slices to sort", (long long)s.count);
    struct unique u = {0};
    uint8_t *data = NULL;
    uint32_t bytes = bw_dtype_bytes(s.x->dtype);
    int rc = unique_find(&u, &s, sorted) ? 0 : no_memory(c);
    dims[axis] = u.groups;
    if (!rc && !(data = calloc((size_t)(s.before * u.groups * s.after) + 1, bytes)))
        rc = no_memory(c);
    for (int64_t i = 0; !rc && i < s.before * u.groups; i++) {
        int64_t from = i / u.groups * s.count + u.first[u.ranked[i % u.groups]];
        memcpy(data + (size_t)(i * s.after) * bytes,
               (const uint8_t *)s.x->host + (size_t)(from * s.after) * bytes, (size_t)s.after * bytes);
    }
    if (!rc)
        rc = bw_onnx_out_array(c, 0, s.x->dtype, rank, dims, data);
    if (!rc)
        rc = unique_out(c, &u, &s);
    free(u.order), free(u.group), free(u.first), free(u.counts), free(u.ranked), free(u.place);
    return rc;
}

/* ---- NonMaxSuppression ---- */

struct box {
    double low[2], high[2];
};

static struct box box_read(const struct bw_onnx_value *boxes, int64_t at, bool centered)
{
    double v[4];
    struct box box;
    for (int i = 0; i < 4; i++)
        v[i] = bw_onnx_host_double(boxes->dtype, boxes->host, at * 4 + i);
    if (centered) { /* x, y, width, height */
        box = (struct box){{v[0] - v[2] / 2, v[1] - v[3] / 2}, {v[0] + v[2] / 2, v[1] + v[3] / 2}};
    } else { /* two opposite corners in any order */
        box = (struct box){{fmin(v[0], v[2]), fmin(v[1], v[3])}, {fmax(v[0], v[2]), fmax(v[1], v[3])}};
    }
    return box;
}

static double box_area(const struct box *b)
{
    return (b->high[0] - b->low[0]) * (b->high[1] - b->low[1]);
}

/* Intersection over union. */
static double overlap(const struct box *a, const struct box *b)
{
    double sides[2];
    for (int i = 0; i < 2; i++)
        sides[i] = fmax(0, fmin(a->high[i], b->high[i]) - fmax(a->low[i], b->low[i]));
    double shared = sides[0] * sides[1], whole = box_area(a) + box_area(b) - shared;
    return whole > 0 ? shared / whole : 0;
}

struct candidate {
    double score;
    int64_t box;
};

static int candidate_order(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (isnan(a->score) != isnan(b->score)) /* no number is no good score, and the order stays one */
        return isnan(a->score) ? 1 : -1;
    if (a->score > b->score || a->score < b->score)
        return a->score > b->score ? -1 : 1;
    return (a->box > b->box) - (a->box < b->box);
}

struct suppression {
    const struct bw_onnx_value *boxes, *scores;
    int64_t per_class_max;
    double overlap_max, score_min;
    bool has_score_min, centered;
    struct candidate *candidates;
    struct box *kept;
    int64_t *result, count; /* triples batch, class, box */
};

static void suppress(struct suppression *s, int64_t batch, int64_t class)
{
    int64_t spatial = s->boxes->dims[1], classes = s->scores->dims[1], found = 0, kept = 0;
    for (int64_t i = 0; i < spatial; i++) {
        double score =
            bw_onnx_host_double(s->scores->dtype, s->scores->host, (batch * classes + class) * spatial + i);
        if (!s->has_score_min || score > s->score_min)
            s->candidates[found++] = (struct candidate){score, i};
    }
    qsort(s->candidates, (size_t)found, sizeof *s->candidates, candidate_order);
    for (int64_t i = 0; i < found && kept < s->per_class_max; i++) {
        struct box box = box_read(s->boxes, batch * spatial + s->candidates[i].box, s->centered);
        bool free_of_others = true;
        for (int64_t k = 0; k < kept && free_of_others; k++)
            free_of_others = overlap(&box, &s->kept[k]) <= s->overlap_max;
        if (!free_of_others)
            continue;
        s->kept[kept++] = box;
        int64_t *triple = s->result + 3 * s->count++;
        triple[0] = batch, triple[1] = class, triple[2] = s->candidates[i].box;
    }
}

static double number_in(struct bw_onnx_call *c, uint32_t input, double absent)
{
    if (!bw_onnx_has(c, input) || bw_onnx_realize_count(c, input) || c->inputs[input]->elements < 1)
        return absent;
    return bw_onnx_host_double(c->inputs[input]->dtype, c->inputs[input]->host, 0);
}

static int non_max_suppression(struct bw_onnx_call *c)
{
    if (bw_onnx_realize_count(c, 0) || bw_onnx_realize_count(c, 1))
        return c->rc;
    struct suppression s = {
        .boxes = c->inputs[0], .scores = c->inputs[1], .centered = bw_onnx_int(c, "center_point_box", 0)};
    s.per_class_max = bw_dtype_int_from(BW_I64, number_in(c, 2, 0));
    s.overlap_max = number_in(c, 3, 0);
    s.score_min = number_in(c, 4, 0);
    s.has_score_min = bw_onnx_has(c, 4);
    bool fits = s.boxes->rank == 3 && s.scores->rank == 3 && s.boxes->dims[2] == 4 &&
                s.boxes->dims[1] == s.scores->dims[2] && s.boxes->dims[0] == s.scores->dims[0];
    if (c->rc || !fits)
        return bw_onnx_fail(c, -EINVAL, "boxes and scores do not fit");
    size_t spatial = (size_t)s.boxes->dims[1] + 1;
    s.candidates = calloc(spatial, sizeof *s.candidates);
    s.kept = calloc(spatial, sizeof *s.kept);
    s.result = calloc((size_t)s.scores->elements * 3 + 1, sizeof *s.result);
    bool ready = s.candidates && s.kept && s.result;
    for (int64_t batch = 0; ready && s.scores->elements && batch < s.boxes->dims[0]; batch++)
        for (int64_t class = 0; class < s.scores->dims[1]; class ++)
            suppress(&s, batch, class);
    free(s.candidates), free(s.kept);
    int64_t dims[] = {s.count, 3};
    if (!ready) {
        free(s.result);
        return no_memory(c);
    }
    return bw_onnx_out_array(c, 0, BW_I64, 2, dims, s.result);
}

/* ---- determinants ---- */

/* By elimination with row pivots, in place. */
static double determinant(double *m, int64_t n)
{
    double product = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            pivot = fabs(m[i * n + k]) > fabs(m[pivot * n + k]) ? i : pivot;
        if (m[pivot * n + k] == 0)
            return 0;
        for (int64_t j = 0; pivot != k && j < n; j++) {
            double swap = m[k * n + j];
            m[k * n + j] = m[pivot * n + j];
            m[pivot * n + j] = swap;
        }
        product *= pivot != k ? -m[k * n + k] : m[k * n + k];
        for (int64_t i = k + 1; i < n; i++) {
            double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
        }
    }
    return product;
}

static int det(struct bw_onnx_call *c)
{
    if (bw_onnx_realize(c, 0))
        return c->rc;
    const struct bw_onnx_value *x = c->inputs[0];
    if (x->rank < 2 || x->dims[x->rank - 1] != x->dims[x->rank - 2])
        return bw_onnx_fail(c, -EINVAL, "no square matrices");
    int64_t n = x->dims[x->rank - 1], matrices = 1;
    for (uint32_t i = 0; i + 2 < x->rank; i++)
        matrices *= x->dims[i];
    double *work = calloc((size_t)(n * n) + 1, sizeof *work);
    uint8_t *result = calloc((size_t)matrices + 1, bw_dtype_bytes(x->dtype));
    for (int64_t k = 0; work && result && k < matrices; k++) {
        for (int64_t i = 0; i < n * n; i++)
            work[i] = bw_onnx_host_double(x->dtype, x->host, k * n * n + i);
        bw_onnx_host_store(x->dtype, result, k, determinant(work, n));
    }
    bool ready = work != NULL;
    free(work);
    if (!ready) {
        free(result);
        return no_memory(c);
    }
    return bw_onnx_out_array(c, 0, x->dtype, x->rank - 2, x->dims, result);
}

static const struct bw_onnx_op rows[] = {
    {"Compress", 9, .function = compress},
    {"Det", 11, .function = det},
    {"NonMaxSuppression", 10, .function = non_max_suppression},
    {"NonZero", 9, .function = nonzero},
    {"Unique", 11, .function = unique},
};

const struct bw_onnx_ops bw_onnx_ops_host = {rows, BW_COUNT_OF(rows)};
