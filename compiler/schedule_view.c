/* Arguments as views of their buffers: see schedule_internal.h.
 *
 * A step of a recurrence reads row t of what all steps share: at t * row + its own index. With t * row in the
 * argument's address instead of the index, all steps are one kernel. */
#include <errno.h>
#include <stdlib.h>

#include "compiler/kernel.h"
#include "compiler/rewrite.h"
#include "compiler/schedule_internal.h"
#include "compiler/symbolic.h"

/* What the loads of one parameter have in common. */
struct view {
    int64_t first; /* no index is smaller; 0: no view */
    int64_t last;  /* no index is larger */
    int64_t elements;
    bool read;
};

static bool is_load_of_param(const struct bw_ir *ir, bw_node node)
{
    bw_node param = bw_ir_op(ir, node) == BW_OP_LOAD ? bw_ir_source(ir, node, 0) : 0;
    return param && bw_ir_op(ir, param) == BW_OP_PARAM && bw_ir_param_number(ir, param) > 0;
}

static void view_note(struct bw_ir *ir, bw_node load, struct view *view)
{
    bw_node index = bw_ir_source(ir, load, 1);
    struct bw_sum sum;
    int64_t low, high, first = 0;
    bw_ir_bounds(ir, index, &low, &high);
    if (bw_ir_dtype(ir, index) == BW_I64 && bw_sum_from(ir, index, &sum) && sum.constant > 0 && low > 0 &&
        low < view->elements)
        first = low;
    view->first = view->read && view->first < first ? view->first : first;
    view->last = view->read && view->last > high ? view->last : high;
    view->read = true;
}

static bw_node shifted(void *user, struct bw_ir *to, const struct bw_ir *from, bw_node node,
                       const bw_node *sources)
{
    const struct view *views = user;
    if (!is_load_of_param(from, node))
        return bw_ir_rebuild(to, from, node, sources);
    bw_node param = bw_ir_source(from, node, 0);
    uint32_t number = bw_ir_param_number(from, param);
    const struct view *view = &views[number];
    if (!view->first)
        return bw_ir_rebuild(to, from, node, sources);
    int64_t rest = view->elements - view->first, reached = view->last - view->first + 1;
    bw_node moved[4] = {bw_kernel_param(to, bw_ir_dtype(from, param), number, false,
                                        reached > 0 && reached < rest ? reached : rest),
                        bw_sym_add(to, sources[1], bw_sym_const(to, -view->first))};
    uint32_t count = bw_ir_source_count(from, node);
    for (uint32_t i = 2; i < count; i++)
        moved[i] = sources[i];
    return bw_ir_load(to, moved[0], moved[1], count > 2 ? moved[2] : 0, count > 3 ? moved[3] : 0);
}

int bw_schedule_views(struct bw_ir *ir, bw_node *sink, const int64_t *elements, uint32_t count,
                      int64_t **offsets)
{
    struct view *views = calloc(count + 1, sizeof *views);
    bool *reached = bw_ir_reachable(ir, sink, 1), any = false;
    int rc = views && reached ? 0 : -ENOMEM;
    for (uint32_t i = 0; !rc && i < count; i++)
        views[i].elements = elements[i];
    for (bw_node node = 1; !rc && node < *sink; node++)
        if (reached[node] && is_load_of_param(ir, node))
            view_note(ir, node, &views[bw_ir_param_number(ir, bw_ir_source(ir, node, 0))]);
    for (uint32_t i = 0; !rc && i < count; i++)
        any |= views[i].first != 0;
    if (!rc && any && !(*offsets = calloc(count, sizeof **offsets)))
        rc = -ENOMEM;
    for (uint32_t i = 0; !rc && any && i < count; i++)
        (*offsets)[i] = views[i].first;
    if (!rc && any)
        rc = bw_ir_rewrite(ir, ir, sink, 1, shifted, views);
    free(reached);
    free(views);
    return rc;
}
