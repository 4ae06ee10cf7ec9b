/* Goal (S9): a process forks while replays over two and over eight GPUs are in flight. The child is told by
 * every call, and neither what it ends, nor its exit, nor its being killed harms anybody; the parent's
 * replays end with the right bytes, and it goes on. */
#include <unistd.h>

#include "tests/scenario/gpu_ring.h"

enum { VRAM_BYTES = 64 << 20, IN_FLIGHT = 3 };

/* Returns the number of the first check that fails, 0 when all hold. */
static int child_tries(struct gpu_ring *ring, uint64_t ticket)
{
    struct rig *rig = ring->rig;
    struct bw_err *err = &rig->err;
    struct bw_buffer *buffer = NULL;
    struct bw_graph *graph = NULL;
    struct bw_linked_graph *linked = NULL;
    uint64_t another;
    uint8_t byte = 0;
    if (bw_linked_graph_replay(ring->linked, NULL, &another, err) != -ECHILD)
        return 1;
    if (bw_linked_graph_wait(ring->linked, ticket, err) != -ECHILD)
        return 2;
    for (uint32_t i = 0; i < ring->count; i++) {
        if (bw_device_synchronize(rig->devices[i], err) != -ECHILD || !err->hint[0])
            return 3;
        if (bw_buffer_read(ring->state[i], 0, &byte, 1, err) != -ECHILD)
            return 4;
        if (bw_buffer_write(ring->state[i], 0, &byte, 1, err) != -ECHILD)
            return 5;
        if (bw_buffer_create(rig->devices[i], 64, 0, &buffer, err) != -ECHILD)
            return 6;
        if (bw_device_recover(rig->devices[i], err) != -ECHILD)
            return 7;
    }
    if (bw_graph_create(rig->ctx, &graph, err) == 0 && bw_graph_link(graph, NULL, &linked, err) != -ECHILD)
        return 8;
    bw_graph_destroy(graph);
    return 0;
}

enum child { TRIES, ENDS_ALL, IS_KILLED, CHILDREN };

static int child_run(struct gpu_ring *ring, uint64_t ticket, enum child what)
{
    int rc = child_tries(ring, ticket);
    if (rc || what == TRIES)
        return rc;
    gpu_ring_close(ring);
    rig_close(ring->rig);
    if (what == IS_KILLED)
        raise(SIGKILL);
    return 0;
}

static bool child_ends(pid_t child, enum child what)
{
    int status = -1;
    BW_EQ(bw_test_wait(child, &status), child);
    if (what == IS_KILLED && WIFSIGNALED(status))
        return BW_EQ(WTERMSIG(status), SIGKILL);
    return BW_TRUE(WIFEXITED(status)) && BW_EQ(WEXITSTATUS(status), 0);
}

static void forks(enum rig_machine kind, uint32_t gpus)
{
    struct machine machine;
    struct gpu_ring ring = {0};
    struct bw_rng rng = {9};
    if (!machine_open(&machine, kind, gpus, VRAM_BYTES, 0))
        return;
    struct rig *rig = &machine.rig;
    bool ok = gpu_ring_open(&ring, rig);
    for (uint32_t round = 0; round < 2 * CHILDREN && ok; round++) {
        enum child what = (enum child)(round % CHILDREN);
        uint64_t ticket = 0;
        ok = BW_OK(gpu_ring_write(&ring, &rng), &rig->err);
        for (uint32_t i = 0; i < IN_FLIGHT && ok; i++) {
            ok = BW_OK(bw_linked_graph_replay(ring.linked, NULL, &ticket, &rig->err), &rig->err);
            gpu_ring_model(&ring);
        }
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            _exit(child_run(&ring, ticket, what));
        if (round >= CHILDREN) /* while the child is still at it, too */
            ok = child_ends(child, what) && ok;
        ok = ok && BW_OK(bw_linked_graph_wait(ring.linked, ticket, &rig->err), &rig->err) &&
             BW_OK(gpu_ring_check(&ring), &rig->err);
        if (round < CHILDREN)
            ok = child_ends(child, what) && ok;
        ok = ok && gpu_ring_works(&ring, &rng, IN_FLIGHT);
    }
    gpu_ring_close(&ring);
    machine_close(&machine);
}

static void the_child_is_told_and_two_gpus_go_on(void)
{
    forks(RIG_STEPPED, 2);
    forks(RIG_THREADED, 2);
}

static void the_child_is_told_and_eight_gpus_go_on(void)
{
    forks(RIG_STEPPED, 8);
    forks(RIG_THREADED, 8);
}

BW_TEST_MAIN("scenario.hcq_fork",
             {"the child is told and two GPUs go on", the_child_is_told_and_two_gpus_go_on},
             {"the child is told and eight GPUs go on", the_child_is_told_and_eight_gpus_go_on})
