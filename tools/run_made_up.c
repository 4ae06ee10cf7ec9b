/* Inputs that were made up although the model's computation depends on what they hold: see run.h. */
#include "base/text.h"
#include "tools/print.h"
#include "tools/run.h"
#include "tools/tool.h"

enum { TYPED_MAX = 16 }; /* elements that anybody would type */

/* NAME=VALUE in the words of --input. */
static void example_add(struct bw_text *text, const struct bw_model_value *declared,
                        const struct bw_array *made)
{
    int64_t count = bw_array_elements(made);
    if (count > TYPED_MAX)
        bw_text_add(text, "%s=FILE", declared->name);
    else
        bw_text_add(text, "%s=%s:VALUE%s", declared->name, bw_dtype_name(bw_dtype_carrier(made->dtype)),
                    count == 1 ? "" : ",...");
}

/* Their names, and how to give the first one; returns how many there are. */
static uint32_t deciding_list(const struct bw_run *run, struct bw_text *names, struct bw_text *example)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < bw_model_input_count(run->model); i++) {
        struct bw_model_value declared;
        if (!run->made_up[i] || !bw_model_input_decided(run->model, i))
            continue;
        bw_model_input(run->model, i, &declared);
        bw_text_add(names, "%s'%s'", count ? ", " : "", declared.name);
        if (!count++)
            example_add(example, &declared, &run->values[i].array);
    }
    return count;
}

void bw_run_made_up_notice(const struct bw_run *run)
{
    struct bw_text names = {0}, example = {0};
    if (deciding_list(run, &names, &example))
        bw_print(stderr,
                 "bellwire: %s: what is computed (shapes, branches, counts) depends on the values of %s, "
                 "which were "
                 "made up: --input %s gives them\n",
                 run->tool, bw_text_string(&names), bw_text_string(&example));
    bw_text_free(&names);
    bw_text_free(&example);
}

void bw_run_made_up_hint(const struct bw_run *run, struct bw_err *err)
{
    struct bw_text names = {0}, example = {0}, before = {0};
    if (deciding_list(run, &names, &example)) {
        if (err->hint[0])
            bw_text_add(&before, "%s; ", err->hint);
        bw_err_hint(err, "%sthe values of %s, which decide here, were made up: --input %s gives them",
                    bw_text_string(&before), bw_text_string(&names), bw_text_string(&example));
    }
    bw_text_free(&names);
    bw_text_free(&example);
    bw_text_free(&before);
}
