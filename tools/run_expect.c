/* --expect: shape, dtype and values. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "tools/run.h"
#include "tools/tool.h"

/* One comparison's findings. */
struct difference {
    uint64_t count, elements;
    int64_t worst;     /* element with the largest excess over the tolerance, or the first that differs */
    double worst_over; /* how far that element is beyond the tolerance */
    double max_abs, max_rel;
};

static void floats_compare(const struct bw_run *run, const struct bw_array *a, const struct bw_array *b,
                           struct difference *difference)
{
    for (int64_t i = 0; i < bw_array_elements(a); i++) {
        double x = bw_tool_element(a, i), y = bw_tool_element(b, i);
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        double apart = fabs(x - y), over = apart - (run->tolerance_abs + run->tolerance_rel * fabs(y));
        if (isnan(apart) || isinf(x) || isinf(y)) /* one is NaN, or only one infinite */
            apart = over = INFINITY;
        else if (y != 0 && apart / fabs(y) > difference->max_rel)
            difference->max_rel = apart / fabs(y);
        if (apart > difference->max_abs)
            difference->max_abs = apart;
        if (over <= 0)
            continue;
        if (!difference->count++ || over > difference->worst_over) {
            difference->worst_over = over;
            difference->worst = i;
        }
    }
}

static bool strings_equal(const struct bw_string *a, const struct bw_string *b)
{
    return a->size_bytes == b->size_bytes && !memcmp(a->data, b->data, a->size_bytes);
}

static void exact_compare(const struct bw_value *a, const struct bw_value *b, struct difference *difference)
{
    uint32_t bytes = bw_dtype_bytes(a->array.dtype);
    const char *x = a->array.data, *y = b->array.data;
    for (int64_t i = 0; i < bw_array_elements(&a->array); i++) {
        if (a->kind == BW_VALUE_STRINGS) {
            if (strings_equal((const struct bw_string *)a->array.data + i,
                              (const struct bw_string *)b->array.data + i))
                continue;
        } else if (!memcmp(x + (uint64_t)i * bytes, y + (uint64_t)i * bytes, bytes)) {
            continue;
        } else {
            double apart = fabs(bw_tool_element(&a->array, i) - bw_tool_element(&b->array, i));
            difference->max_abs = fmax(difference->max_abs, apart);
        }
        if (!difference->count++)
            difference->worst = i;
    }
}

static void index_text(const struct bw_array *array, int64_t element, char *text, size_t size)
{
    int64_t index[BW_TENSOR_RANK_MAX];
    for (uint32_t axis = array->rank; axis-- > 0; element /= array->dims[axis])
        index[axis] = element % array->dims[axis];
    size_t length = (size_t)snprintf(text, size, "[");
    for (uint32_t axis = 0; axis < array->rank && length < size; axis++)
        length +=
            (size_t)snprintf(text + length, size - length, "%s%lld", axis ? "," : "", (long long)index[axis]);
    if (length < size)
        snprintf(text + length, size - length, "]");
}

static int values_compare(struct bw_run *run, const char *name, const struct bw_value *observed,
                          const struct bw_value *expected);

static int sequences_compare(struct bw_run *run, const char *name, const struct bw_value *observed,
                             const struct bw_value *expected)
{
    int rc = 0;
    for (uint64_t i = 0; i < observed->item_count && !rc; i++) {
        char item[160];
        snprintf(item, sizeof item, "%s[%llu]", name, (unsigned long long)i);
        rc = values_compare(run, item, &observed->items[i], &expected->items[i]);
    }
    return rc;
}

/* 0, or -EDOM with the difference printed. */
static int values_compare(struct bw_run *run, const char *name, const struct bw_value *observed,
                          const struct bw_value *expected)
{
    struct bw_err err = {0};
    struct difference difference = {0};
    struct bw_tool_type a = bw_tool_type(observed), b = bw_tool_type(expected);
    if (strcmp(a.text, b.text) != 0) {
        bw_fail(&err, -EDOM, "run", "output '%s': type and shape", name);
        bw_err_expected(&err, "%s", b.text);
        bw_err_observed(&err, "%s", a.text);
        bw_tool_fail(&err);
        return err.code;
    }
    if (observed->kind == BW_VALUE_SEQUENCE)
        return sequences_compare(run, name, observed, expected);
    if (observed->kind == BW_VALUE_NONE)
        return 0;
    if (bw_dtype_is_float(observed->array.dtype))
        floats_compare(run, &observed->array, &expected->array, &difference);
    else
        exact_compare(observed, expected, &difference);
    run->compared++;
    run->max_abs_diff = fmax(run->max_abs_diff, difference.max_abs);
    run->max_rel_diff = fmax(run->max_rel_diff, difference.max_rel);
    if (!difference.count)
        return 0;
    char where[96];
    index_text(&observed->array, difference.worst, where, sizeof where);
    bw_fail(&err, -EDOM, "run", "output '%.60s': %llu of %lld elements differ, most at %s", name,
            (unsigned long long)difference.count, (long long)bw_array_elements(&observed->array), where);
    bw_err_expected(&err, "%.60s", bw_tool_element_text(&expected->array, difference.worst).text);
    bw_err_observed(&err, "%.90s", bw_tool_element_text(&observed->array, difference.worst).text);
    bw_tool_fail(&err);
    return err.code;
}

/* The output that a binding names, or the number of outputs. */
static uint32_t output_find(const struct bw_run *run, const struct bw_run_binding *binding,
                            struct bw_model_value *declared)
{
    uint32_t count = bw_model_output_count(run->model), i = 0;
    for (; i < count; i++) {
        bw_model_output(run->model, i, declared);
        if (bw_run_names(binding, declared->name, i))
            break;
    }
    return i;
}

/* What names there are. */
static void outputs_list(const struct bw_run *run, struct bw_text *text)
{
    for (uint32_t i = 0; i < bw_model_output_count(run->model); i++) {
        struct bw_model_value value;
        bw_model_output(run->model, i, &value);
        bw_text_add(text, "%s%s", i ? ", " : "", value.name);
    }
}

int bw_run_expect_check(const struct bw_run *run)
{
    for (size_t k = 0; k < run->expects.count; k++) {
        const struct bw_run_binding *binding = &run->expects.data[k];
        struct bw_model_value declared;
        struct bw_err err = {0};
        uint32_t i = output_find(run, binding, &declared);
        if (i == bw_model_output_count(run->model)) {
            struct bw_text names = {0};
            outputs_list(run, &names);
            int status = bw_tool_usage("run", "--expect %.*s: no such output; there are: %.300s",
                                       (int)binding->name_bytes, binding->name, bw_text_string(&names));
            bw_text_free(&names);
            return status;
        }
        for (size_t j = 0; j < k; j++)
            if (bw_run_names(&run->expects.data[j], declared.name, i))
                return bw_tool_usage("run", "--expect %s: given twice", declared.name);
        if (!bw_run_is_typed(binding) && access(binding->text, R_OK)) {
            bw_fail(&err, -errno, "file", "%s", binding->text);
            bw_err_hint(&err, "%s", strerrordesc_np(-err.code));
            return bw_tool_fail(&err);
        }
    }
    return BW_TOOL_DONE;
}

static int expect_one(struct bw_run *run, const struct bw_run_binding *binding)
{
    struct bw_model_value declared;
    uint32_t i = output_find(run, binding, &declared);
    struct bw_value expected = {0};
    const struct bw_array *observed = &run->outputs[i].array;
    declared.kind = run->outputs[i].kind; /* what a .pb holds */
    declared.has_shape = true;            /* what a typed list is */
    declared.rank = observed->rank;
    for (uint32_t axis = 0; axis < observed->rank; axis++)
        declared.dims[axis].size = observed->dims[axis];
    int status = bw_run_value_read(run, "--expect", binding, &declared, &expected);
    if (status)
        return status;
    enum bw_dtype dtype = observed->dtype;
    if (expected.array.dtype == bw_dtype_carrier(dtype)) /* a .npy has bytes for storage types */
        expected.array.dtype = dtype;
    run->expected++;
    run->failed += values_compare(run, declared.name, &run->outputs[i], &expected) != 0;
    bw_value_free(&expected);
    return BW_TOOL_DONE;
}

int bw_run_expect(struct bw_run *run)
{
    int status = BW_TOOL_DONE;
    for (size_t i = 0; i < run->expects.count && !status; i++)
        status = expect_one(run, &run->expects.data[i]);
    return status ? status : run->failed ? BW_TOOL_FAILED : BW_TOOL_DONE;
}
