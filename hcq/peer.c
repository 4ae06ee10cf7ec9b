/* Peers: which GPU may touch whose memory, proved before it is used.
 *
 * A topology file and a mapping that succeeds say little: windows exist that swallow writes into a private
 * mirror, and windows that stall. So the first use of a pair runs a small exchange, in which the owner's side
 * has to confirm what the other one did:
 *
 *   owner:  writes A and a blank into memory of its own
 *   peer:   reads A through its window, writes B over the blank
 *   owner:  reads what is there now: B
 *
 * The exchange runs on queues of its own, so that one that stalls can be torn down with nothing lost. Every
 * direction is proved by itself; results stay in the context until one of the two devices is closed. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "hcq/hcq.h"

#define PROOF_WAIT_NS 1000000000ull /* without any progress; a healthy exchange takes microseconds */
#define LOOK_NS_FIRST 20000ull
#define LOOK_NS_MAX   1000000ull

enum {
    PATTERN_BYTES = 64,
    COMMAND_BYTES = 4096,
    /* Of a side's host block, behind its commands. */
    OUT_A = COMMAND_BYTES, /* what it writes */
    OUT_B = OUT_A + PATTERN_BYTES,
    IN = OUT_B + PATTERN_BYTES, /* what it read */
    SIGNAL = IN + PATTERN_BYTES,
    SIDE_BYTES = 2 * COMMAND_BYTES,
    STEPS_MAX = 2, /* copies of one command buffer */
};

struct copy {
    uint64_t target, source;
};

/* One of the two devices. */
struct side {
    struct bw_hcq_device *device;
    struct bw_queue *queue;
    struct bw_block *block; /* host memory of its own */
    struct bw_encoder encoder;
    uint64_t signal; /* last value asked for */
};

struct proof {
    struct side peer, owner;
    struct bw_block *target; /* the owner's memory, mapped at the peer */
};

static char *side_bytes(const struct side *side, uint32_t offset)
{
    return (char *)bw_block_map(side->block) + offset;
}

static uint64_t side_address(const struct side *side, uint32_t offset)
{
    return side->block->memory.address + offset;
}

static void side_close(struct side *side)
{
    if (side->queue)
        side->device->device->ops->queue_destroy(side->queue);
    bw_block_release(side->block);
    bw_encoder_free(&side->encoder);
}

static int side_open(struct side *side, struct bw_hcq_device *device, struct bw_err *err)
{
    const struct bw_driver_ops *ops = device->device->ops;
    *side = (struct side){.device = device};
    int rc = bw_block_create(device, SIDE_BYTES, BW_BUFFER_HOST | BW_BUFFER_UNCACHED, &side->block, err);
    if (!rc && !bw_block_map(side->block))
        rc = bw_fail(err, -ENOTSUP, "hcq", "host memory of %s has no CPU view", device->device->info.name);
    if (!rc)
        rc = ops->queue_create(device->device, BW_QUEUE_COPY, 0, &side->queue, err);
    if (!rc)
        memset(side_bytes(side, 0), 0, SIDE_BYTES);
    return rc;
}

static int side_submit(struct side *side, const struct copy *copies, uint32_t count, struct bw_err *err)
{
    const struct bw_driver_ops *ops = side->device->device->ops;
    struct bw_encoder *encoder = &side->encoder;
    uint64_t done_bytes;
    encoder->count = encoder->patch_count = 0;
    if (ops->encode_begin)
        ops->encode_begin(side->queue, encoder);
    ops->encode_barrier(side->queue, encoder, BW_BARRIER_EXECUTION | BW_BARRIER_ACQUIRE);
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++) {
        rc = ops->encode_copy(side->queue, encoder, bw_operand_constant(copies[i].target),
                              bw_operand_constant(copies[i].source), PATTERN_BYTES, &done_bytes);
        assert(rc || done_bytes == PATTERN_BYTES);
    }
    ops->encode_signal(side->queue, encoder, bw_operand_constant(side_address(side, SIGNAL)),
                       bw_operand_constant(++side->signal), false);
    ops->encode_end(side->queue, encoder);
    if (rc || encoder->failed)
        return bw_fail(err, rc ? rc : encoder->failed, "hcq", "encoding the proof of a peer");
    assert(encoder->count * sizeof(uint32_t) <= COMMAND_BYTES);
    memcpy(side_bytes(side, 0), encoder->words, encoder->count * sizeof(uint32_t));
    rc = ops->submit(side->queue, side_address(side, 0), encoder->count);
    if (!rc && ops->flush)
        rc = ops->flush(side->queue);
    return rc ? bw_fail(err, rc, "hcq", "submitting the proof of a peer") : 0;
}

/* 0, -ETIMEDOUT when nothing moves, or what broke the device, which fails it. */
static int side_wait(struct side *side, struct bw_err *err)
{
    struct bw_hcq_device *device = side->device;
    const struct bw_driver_ops *ops = device->device->ops;
    const struct bw_sys_ops *sys = device->sys->ops;
    const uint64_t *signal = (const uint64_t *)(const void *)side_bytes(side, SIGNAL);
    uint64_t limit_ns =
        device->ctx->config.wait_ns < PROOF_WAIT_NS ? device->ctx->config.wait_ns : PROOF_WAIT_NS;
    uint64_t progress = ops->queue_progress(side->queue), look_ns = LOOK_NS_FIRST;
    uint64_t moved_ns = sys->clock_ns(device->sys), now_ns = moved_ns;
    while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) != side->signal) {
        if (now_ns - moved_ns >= limit_ns)
            return -ETIMEDOUT;
        sys->sleep_ns(device->sys, look_ns);
        look_ns = look_ns * 2 < LOOK_NS_MAX ? look_ns * 2 : LOOK_NS_MAX;
        struct bw_err failure;
        if (ops->query_fault(device->device, &failure)) {
            int rc = bw_hcq_device_fail(device, &failure);
            if (err)
                *err = failure;
            return rc;
        }
        now_ns = sys->clock_ns(device->sys);
        uint64_t progress_now = ops->queue_progress(side->queue);
        moved_ns = progress_now != progress ? now_ns : moved_ns;
        progress = progress_now;
    }
    return 0;
}

static int side_run(struct side *side, const struct copy *copies, uint32_t count, struct bw_err *err)
{
    assert(count <= STEPS_MAX);
    int rc = side_submit(side, copies, count, err);
    return rc ? rc : side_wait(side, err);
}

static void pattern_fill(char *bytes, uint64_t seed)
{
    for (uint32_t i = 0; i < PATTERN_BYTES; i += sizeof seed) {
        seed = bw_hash64(seed + i);
        memcpy(bytes + i, &seed, sizeof seed);
    }
}

/* Why the pair cannot be used, as the error that users of it get. */
static int proof_refuse(const struct proof *proof, struct bw_err *why, const char *what)
{
    bw_fail(why, -EOPNOTSUPP, "hcq", "%s does not reach memory of %s", proof->peer.device->device->info.name,
            proof->owner.device->device->info.name);
    bw_err_expected(why, "a write that the owner sees");
    bw_err_observed(why, "%s", what);
    return -EOPNOTSUPP;
}

/* The exchange. -EOPNOTSUPP with *why: it does not work; other errors go to *err. */
static int proof_run(struct proof *proof, struct bw_err *why, struct bw_err *err)
{
    struct side *peer = &proof->peer, *owner = &proof->owner;
    uint64_t target = proof->target->memory.address, blank = target + PATTERN_BYTES;
    char a[PATTERN_BYTES], b[PATTERN_BYTES];
    pattern_fill(a, proof->target->id);
    pattern_fill(b, ~proof->target->id);
    memcpy(side_bytes(owner, OUT_A), a, PATTERN_BYTES); /* the blank is zeros */
    memcpy(side_bytes(peer, OUT_B), b, PATTERN_BYTES);
    const struct copy prepare[] = {{target, side_address(owner, OUT_A)}, {blank, side_address(owner, OUT_B)}};
    const struct copy exchange[] = {{side_address(peer, IN), target}, {blank, side_address(peer, OUT_B)}};
    const struct copy confirm[] = {{side_address(owner, IN), blank}};
    int rc = side_run(owner, prepare, BW_COUNT_OF(prepare), err);
    if (rc)
        return rc == -ETIMEDOUT
                   ? bw_fail(err, rc, "hcq", "%s does not answer", owner->device->device->info.name)
                   : rc;
    rc = side_run(peer, exchange, BW_COUNT_OF(exchange), err);
    if (rc == -ETIMEDOUT)
        return proof_refuse(proof, why, "an access that never ends");
    if (!rc)
        rc = side_run(owner, confirm, BW_COUNT_OF(confirm), err);
    if (rc)
        return rc == -ETIMEDOUT ? proof_refuse(proof, why, "the owner does not answer any more") : rc;
    if (memcmp(side_bytes(peer, IN), a, PATTERN_BYTES))
        return proof_refuse(proof, why, "reads that give other bytes than the owner's");
    if (memcmp(side_bytes(owner, IN), b, PATTERN_BYTES))
        return proof_refuse(proof, why, "writes that do not arrive");
    return 0;
}

/* The owner's memory at the peer's address space: what the kernel allows. */
static int target_map(struct proof *proof, struct bw_err *err)
{
    struct bw_block *target = proof->target;
    struct bw_hcq_device *peer = proof->peer.device;
    pthread_mutex_lock(&target->owner->lock);
    int rc = peer->device->ops->map_peer(peer->device, target->owner->device, &target->memory, err);
    if (!rc) {
        __atomic_fetch_or(&target->reach, 1ull << peer->index, __ATOMIC_RELEASE);
        __atomic_fetch_or(&target->users, 1ull << peer->index, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&target->owner->lock);
    return rc;
}

/* 0; -EOPNOTSUPP with *why; other errors go to *err. */
static int proof_make(struct bw_hcq_device *peer, struct bw_hcq_device *owner, struct bw_err *why,
                      struct bw_err *err)
{
    struct proof proof = {.peer.device = peer, .owner.device = owner};
    int rc = bw_block_create(owner, COMMAND_BYTES, BW_BUFFER_DEVICE, &proof.target, err);
    if (rc)
        return rc;
    rc = target_map(&proof, why);
    if (rc && rc != -EOPNOTSUPP && err)
        *err = *why;
    if (!rc)
        rc = side_open(&proof.peer, peer, err);
    if (!rc)
        rc = side_open(&proof.owner, owner, err);
    if (!rc)
        rc = proof_run(&proof, why, err);
    side_close(&proof.peer); /* queues first: what they touch is given back after */
    side_close(&proof.owner);
    bw_block_release(proof.target);
    return rc;
}

/* What needs no proof: one device, or memory that CPUs share; a file is nobody's memory. */
static bool link_given(struct bw_hcq_device *from, struct bw_hcq_device *to, struct bw_link *link)
{
    bool both_cpu = from->device->caps.host_addressable && to->device->caps.host_addressable;
    *link = (struct bw_link){.kind = from == to ? BW_LINK_SELF : BW_LINK_MEMORY};
    return from == to || (both_cpu && !to->device->caps.file_address);
}

static int peer_find_out(struct bw_hcq_device *from, struct bw_hcq_device *to, struct bw_hcq_peer *peer,
                         struct bw_err *err)
{
    const struct bw_driver_ops *ops = from->device->ops;
    if (from->device->caps.host_addressable || to->device->caps.host_addressable || ops != to->device->ops ||
        !ops->link || !ops->map_peer || !from->device->caps.copy_queues || !to->device->caps.copy_queues) {
        bw_fail(&peer->why, -EOPNOTSUPP, "hcq", "%s has no way to memory of %s", from->device->info.name,
                to->device->info.name);
        return 0;
    }
    int rc = ops->link(from->device, to->device, &peer->link, err);
    if (!rc)
        rc = proof_make(from, to, &peer->why, err);
    if (rc == -EOPNOTSUPP)
        peer->link.kind = BW_LINK_NONE;
    else if (!rc && peer->link.kind == BW_LINK_NONE)
        peer->link.kind = BW_LINK_PCIE; /* the kernel's topology does not name it, but it works */
    return rc == -EOPNOTSUPP ? 0 : rc;
}

int bw_hcq_peer_get(struct bw_hcq_device *from, struct bw_hcq_device *to, const struct bw_hcq_peer **out,
                    struct bw_err *err)
{
    struct bw_ctx *ctx = from->ctx;
    struct bw_hcq_peer **slot = &ctx->peers[from->index][to->index];
    struct bw_hcq_peer *peer = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
    int rc = 0;
    if (!peer) {
        pthread_mutex_lock(&ctx->peer_lock);
        peer = *slot;
        if (!peer) {
            peer = calloc(1, sizeof *peer);
            rc = peer ? peer_find_out(from, to, peer, err) : bw_fail(err, -ENOMEM, "hcq", "peers");
            if (rc) {
                free(peer);
                peer = NULL;
            }
            __atomic_store_n(slot, peer, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&ctx->peer_lock);
    }
    *out = peer;
    return rc;
}

int bw_hcq_peer_check(struct bw_hcq_device *from, struct bw_hcq_device *to, struct bw_err *err)
{
    const struct bw_hcq_peer *peer;
    struct bw_link link;
    if (from->device->caps.host_addressable || link_given(from, to, &link))
        return 0;
    int rc = bw_hcq_peer_get(from, to, &peer, err);
    if (rc || peer->link.kind != BW_LINK_NONE)
        return rc;
    if (err)
        *err = peer->why;
    return -EOPNOTSUPP;
}

void bw_hcq_peers_forget(struct bw_hcq_device *gone)
{
    struct bw_ctx *ctx = gone->ctx;
    pthread_mutex_lock(&ctx->peer_lock);
    for (uint32_t i = 0; i < BW_HCQ_DEVICES_MAX; i++) {
        free(ctx->peers[i][gone->index]);
        ctx->peers[i][gone->index] = NULL;
        free(ctx->peers[gone->index][i]);
        ctx->peers[gone->index][i] = NULL;
    }
    pthread_mutex_unlock(&ctx->peer_lock);
}

int bw_device_link(struct bw_device *from, struct bw_device *to, struct bw_link *link, struct bw_err *err)
{
    struct bw_hcq_device *near = bw_hcq_device_of(from), *far = bw_hcq_device_of(to);
    const struct bw_hcq_peer *peer;
    if (near->ctx != far->ctx)
        return bw_fail(err, -EINVAL, "hcq", "%s and %s are of two contexts", from->info.name, to->info.name);
    int rc = bw_hcq_device_check(near, err);
    if (!rc)
        rc = bw_hcq_device_check(far, err);
    if (rc || link_given(near, far, link))
        return rc;
    rc = bw_hcq_peer_get(near, far, &peer, err);
    if (rc)
        return rc;
    *link = peer->link;
    if (err && link->kind == BW_LINK_NONE)
        *err = peer->why;
    return 0;
}
