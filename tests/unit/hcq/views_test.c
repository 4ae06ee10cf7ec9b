/* Goal: views of buffers, and views of views, are the same bytes at the right place: for the host, for graphs
 * that copy between them, whoever of the handles is destroyed first; what does not lie inside is refused. */
#include "tests/seed.h"
#include "tests/unit/hcq/mock_rig.h"

enum { BASES = 3, BASE_BYTES = 3000, HANDLES_MAX = 40, COPIES_MAX = 6, STEPS = 1500 };

/* A handle: a window of base `base` at `offset`. */
struct handle {
    struct bw_buffer *buffer;
    uint32_t base;
    uint64_t offset, size_bytes;
};

struct world {
    struct rig *rig;
    struct bw_rng rng;
    uint8_t model[BASES][BASE_BYTES];
    uint64_t addresses[BASES]; /* 0: there is no such base now */
    struct handle handles[HANDLES_MAX];
    uint32_t count;
    bool wrong;
};

static uint64_t below(struct world *world, uint64_t bound)
{
    return bw_rng_below(&world->rng, bound);
}

static void expect(struct world *world, bool ok)
{
    world->wrong |= !ok;
}

/* A part of the handle's bytes, not empty; handles that are kept are not, either. */
static struct bw_range part_of(struct world *world, const struct handle *handle, uint64_t most)
{
    uint64_t offset = below(world, handle->size_bytes), left = handle->size_bytes - offset;
    return (struct bw_range){handle->buffer, 0, offset, 1 + below(world, left < most ? left : most)};
}

static uint8_t *model_at(struct world *world, const struct handle *handle, uint64_t offset)
{
    return world->model[handle->base] + handle->offset + offset;
}

static void handle_check(struct world *world, const struct handle *handle)
{
    char *map = bw_buffer_map(handle->buffer);
    expect(world, BW_EQ(bw_buffer_size(handle->buffer), handle->size_bytes));
    expect(world, BW_EQ(bw_buffer_address(handle->buffer), world->addresses[handle->base] + handle->offset));
    expect(world, BW_TRUE(bw_buffer_device(handle->buffer) == world->rig->devices[0]));
    expect(world, BW_TRUE((map != NULL) == (handle->base == 0))); /* the first base is host memory */
}

static void base_make(struct world *world, uint32_t base)
{
    struct handle *made = &world->handles[world->count];
    uint32_t flags = base == 0 ? BW_BUFFER_HOST : BW_BUFFER_DEVICE;
    *made = (struct handle){.base = base, .size_bytes = BASE_BYTES};
    for (int i = 0; i < BASE_BYTES; i++)
        world->model[base][i] = (uint8_t)bw_rng_next(&world->rng);
    struct rig *rig = world->rig;
    expect(world,
           BW_OK(bw_buffer_create(rig->devices[0], BASE_BYTES, flags, &made->buffer, &rig->err), &rig->err));
    if (world->wrong)
        return;
    world->count++;
    world->addresses[base] = bw_buffer_address(made->buffer);
    expect(world,
           BW_OK(bw_buffer_write(made->buffer, 0, world->model[base], BASE_BYTES, &rig->err), &rig->err));
}

static void view_make(struct world *world)
{
    const struct handle *of = &world->handles[below(world, world->count)];
    struct handle *made = &world->handles[world->count];
    /* Now and then out of the buffer, by a little or by a wrap. */
    uint64_t offset = below(world, of->size_bytes + 1), size = below(world, of->size_bytes - offset + 1);
    if (below(world, 8) == 0)
        size += below(world, 2) ? of->size_bytes - offset - size + 1 : UINT64_MAX - below(world, 100) - size;
    bool fits = offset <= of->size_bytes && size <= of->size_bytes - offset;
    *made = (struct handle){NULL, of->base, of->offset + offset, size};
    int rc = bw_buffer_view(of->buffer, offset, size, &made->buffer, &world->rig->err);
    expect(world, BW_EQ(rc, fits ? 0 : -ERANGE));
    if (rc)
        return;
    handle_check(world, made);
    if (size)
        world->count++;
    else
        bw_buffer_destroy(made->buffer);
}

static void bytes_write(struct world *world)
{
    const struct handle *to = &world->handles[below(world, world->count)];
    struct bw_range range = part_of(world, to, 700);
    uint8_t *model = model_at(world, to, range.offset);
    for (uint64_t i = 0; i < range.size_bytes; i++)
        model[i] = (uint8_t)bw_rng_next(&world->rng);
    struct bw_err *err = &world->rig->err;
    expect(world, BW_OK(bw_buffer_write(to->buffer, range.offset, model, range.size_bytes, err), err));
    expect(world, BW_EQ(bw_buffer_write(to->buffer, to->size_bytes, model, 1, err), -ERANGE));
}

static void bytes_read(struct world *world)
{
    const struct handle *from = &world->handles[below(world, world->count)];
    struct bw_range range = part_of(world, from, 700);
    uint8_t got[700];
    struct bw_err *err = &world->rig->err;
    expect(world, BW_OK(bw_buffer_read(from->buffer, range.offset, got, range.size_bytes, err), err));
    expect(world, BW_BYTES(got, model_at(world, from, range.offset), range.size_bytes));
}

/* One copy from view to view in the graph, and in the model, where nothing else can come in between. */
static void copy_add(struct world *world, struct bw_graph *graph)
{
    const struct handle *to = &world->handles[below(world, world->count)],
                        *from = &world->handles[below(world, world->count)];
    struct bw_range target = part_of(world, to, 300), source = part_of(world, from, 300);
    uint64_t bytes = target.size_bytes < source.size_bytes ? target.size_bytes : source.size_bytes;
    target.size_bytes = source.size_bytes = bytes;
    uint8_t *a = model_at(world, to, target.offset), *b = model_at(world, from, source.offset);
    bool overlap = to->base == from->base && a < b + bytes && b < a + bytes;
    int rc = bw_graph_copy(graph, world->rig->devices[0], target, source, &world->rig->err);
    expect(world, BW_EQ(rc, overlap ? -EINVAL : 0));
    if (!overlap)
        memcpy(a, b, bytes);
}

static void bytes_copy(struct world *world)
{
    struct rig *rig = world->rig;
    struct bw_graph *graph = rig_graph(rig);
    uint64_t ticket;
    for (uint64_t copies = 1 + below(world, COPIES_MAX); copies; copies--)
        copy_add(world, graph);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    if (!linked || !BW_OK(bw_linked_graph_replay(linked, NULL, &ticket, &rig->err), &rig->err) ||
        !BW_OK(bw_linked_graph_wait(linked, ticket, &rig->err), &rig->err))
        world->wrong = true;
    bw_linked_graph_destroy(linked);
}

static void handle_end(struct world *world, uint32_t index)
{
    uint32_t base = world->handles[index].base, left = 0;
    bw_buffer_destroy(world->handles[index].buffer);
    world->handles[index] = world->handles[--world->count];
    for (uint32_t i = 0; i < world->count; i++)
        left += world->handles[i].base == base;
    if (!left)
        world->addresses[base] = 0;
}

static void step(struct world *world)
{
    uint32_t base = (uint32_t)below(world, BASES);
    if (world->count < HANDLES_MAX && (!world->count || (!world->addresses[base] && below(world, 3) == 0)))
        base_make(world, world->addresses[base] ? 0 : base);
    uint64_t what = below(world, 10);
    if (what < 3 && world->count < HANDLES_MAX)
        view_make(world);
    else if (what < 5)
        bytes_write(world);
    else if (what < 7)
        bytes_read(world);
    else if (what < 8)
        bytes_copy(world);
    else
        handle_end(world, (uint32_t)below(world, world->count));
}

static void walk(struct rig *rig)
{
    struct world *world = calloc(1, sizeof *world);
    if (!BW_TRUE(world != NULL))
        return;
    world->rig = rig;
    world->rng = bw_test_rng("views");
    for (int i = 0; i < STEPS && !world->wrong; i++)
        step(world);
    while (world->count)
        handle_end(world, world->count - 1);
    free(world);
}

static void on_the_host(void)
{
    static const char *const names[] = {"host:0", NULL};
    struct rig rig;
    if (rig_open(&rig, NULL, names))
        walk(&rig);
    rig_close(&rig);
}

static void on_a_gpu(void)
{
    struct machine machine;
    if (!machine_open(&machine, RIG_STEPPED, 1, 64 << 20, 0))
        return;
    walk(&machine.rig);
    machine_close(&machine);
}

BW_TEST_MAIN("hcq.views", {"on the host", on_the_host}, {"on a GPU", on_a_gpu})
