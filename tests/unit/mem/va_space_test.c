/* Goal: reserved address space grows in pieces, keeps to the device's reach, gives everything back, and
 * survives a system that refuses any of its calls. */
#include <bellwire/sys.h>

#include <errno.h>

#include "iface/sys_wrap.h"
#include "mem/va_space.h"
#include "tests/check.h"
#include "tests/seed.h"

struct fixture {
    struct bw_sys *host, *sys;
    struct bw_va_space space;
};

static void open_fixture(struct fixture *fixture, uint64_t lowest, uint64_t highest)
{
    BW_EQ(bw_sys_host_create(&fixture->host), 0);
    BW_EQ(bw_sys_wrap_create(fixture->host, &fixture->sys), 0);
    BW_EQ(bw_va_space_init(&fixture->space, fixture->sys, lowest, highest), 0);
}

static void close_fixture(struct fixture *fixture, uint64_t leaked)
{
    BW_EQ(bw_va_space_fini(&fixture->space), leaked);
    BW_EQ(bw_sys_wrap_mapped_bytes(fixture->sys), 0);
    bw_sys_destroy(fixture->sys);
    bw_sys_destroy(fixture->host);
}

/* The model: what lives, as intervals. */
enum { LIVE = 64 };
struct model {
    uint64_t begin[LIVE], size_bytes[LIVE]; /* 0: nothing */
};

/* No range of the model is met, and the whole lies in one reserved piece. */
static bool range_is_new(const struct model *model, const struct bw_va_space *space, uint64_t begin,
                         uint64_t size_bytes)
{
    bool reserved = false;
    for (size_t i = 0; i < space->pieces.count; i++) {
        uint64_t piece = (uint64_t)(uintptr_t)space->pieces.data[i].base;
        reserved |= begin >= piece && begin + size_bytes <= piece + space->pieces.data[i].size_bytes;
    }
    for (int i = 0; i < LIVE; i++) {
        if (model->begin[i] && begin < model->begin[i] + model->size_bytes[i] &&
            model->begin[i] < begin + size_bytes)
            return false;
    }
    return reserved;
}

static void ranges_are_reserved_disjoint_and_usable(void)
{
    struct fixture f;
    open_fixture(&f, 0, UINT64_MAX);
    struct bw_rng rng = bw_test_rng("va");
    struct model model = {0};
    uint64_t *live = model.begin, *size = model.size_bytes;
    for (int step = 0; step < 1500; step++) {
        int i = (int)bw_rng_below(&rng, LIVE);
        if (live[i]) {
            /* Back to a bare reservation, then back to the space. */
            struct bw_region region;
            struct bw_map_request reserve = {
                .fd = -1, .size_bytes = size[i], .fixed_address = live[i], .reserve = true};
            struct bw_region held = {(void *)live[i], size[i], 0, NULL, NULL};
            uint64_t damaged = 0;
            for (uint64_t at = 0; at < size[i]; at += BW_VA_PAGE_BYTES)
                damaged += bw_rd64(&held, at) != live[i] + at;
            BW_EQ(damaged, 0);
            BW_EQ(f.sys->ops->map(f.sys, &reserve, &region), 0);
            BW_EQ(bw_va_space_free(&f.space, live[i]), size[i]);
            live[i] = 0;
            continue;
        }
        uint64_t alignment = bw_rng_below(&rng, 4) ? 0 : 2 << 20;
        size[i] = 4096 * (1 + bw_rng_below(&rng, 600));
        uint64_t address = 0;
        if (!BW_EQ(bw_va_space_alloc(&f.space, size[i], alignment, &address), 0) ||
            !BW_TRUE(range_is_new(&model, &f.space, address, size[i])))
            break;
        live[i] = address;
        BW_EQ(live[i] % (alignment ? alignment : 4096), 0);
        struct bw_region region;
        struct bw_map_request map = {
            .fd = -1, .size_bytes = size[i], .fixed_address = live[i], .writable = true};
        BW_EQ(f.sys->ops->map(f.sys, &map, &region), 0);
        for (uint64_t at = 0; at < size[i]; at += BW_VA_PAGE_BYTES)
            bw_wr64(&region, at, live[i] + at);
    }
    BW_EQ(f.space.pieces.count, 1);
    uint64_t leaked = 0;
    for (int i = 0; i < LIVE; i++)
        leaked += live[i] ? size[i] : 0;
    close_fixture(&f, leaked);
}

static void a_full_piece_is_followed_by_another(void)
{
    struct fixture f;
    uint64_t a, b, big;
    open_fixture(&f, 0, UINT64_MAX);
    BW_EQ(bw_va_space_alloc(&f.space, 1, 0, &a), 0);
    uint64_t piece = f.space.pieces.data[0].size_bytes;
    BW_TRUE(piece <= BW_VA_PIECE_BYTES_MAX && piece >= BW_VA_PIECE_BYTES_MIN);
    BW_EQ(bw_va_space_alloc(&f.space, piece, 0, &b), 0);
    BW_EQ(f.space.pieces.count, 2);
    /* Larger than any piece: one of its own size. */
    BW_EQ(bw_va_space_alloc(&f.space, 96ull << 30, 0, &big), 0);
    BW_EQ(f.space.pieces.count, 3);
    BW_EQ(bw_va_space_alloc(&f.space, 0, 0, &a), -EINVAL);
    BW_EQ(bw_va_space_alloc(&f.space, UINT64_MAX - 8192, 0, &a), -EINVAL);
    BW_EQ(bw_va_space_alloc(&f.space, 1ull << 60, 0, &a), -ENOMEM);
    BW_EQ(bw_va_space_free(&f.space, b), piece);
    BW_EQ(bw_va_space_free(&f.space, big), 96ull << 30);
    close_fixture(&f, 4096);
}

static void space_out_of_the_devices_reach_is_refused(void)
{
    struct fixture f;
    uint64_t address = 0;
    open_fixture(&f, 4096, 1ull << 20);
    BW_EQ(bw_va_space_alloc(&f.space, 4096, 0, &address), -ERANGE);
    close_fixture(&f, 0);
}

static void a_refused_piece_is_tried_smaller(void)
{
    struct fixture f;
    uint64_t address = 0;
    open_fixture(&f, 0, UINT64_MAX);
    bw_sys_wrap_fail(f.sys, BW_SYS_CALL_MAP, 1, ENOMEM);
    BW_EQ(bw_va_space_alloc(&f.space, 4096, 0, &address), 0);
    BW_TRUE(bw_sys_wrap_fired(f.sys));
    BW_EQ(f.space.pieces.data[0].size_bytes, BW_VA_PIECE_BYTES_MAX / 2);
    close_fixture(&f, 4096);
}

BW_TEST_MAIN("mem.va_space",
             {"ranges are reserved, disjoint and usable", ranges_are_reserved_disjoint_and_usable},
             {"a full piece is followed by another", a_full_piece_is_followed_by_another},
             {"space out of the device's reach is refused", space_out_of_the_devices_reach_is_refused},
             {"a refused piece is tried smaller", a_refused_piece_is_tried_smaller})
