/* Goal (S6): rings of one page, engines that block on a signal until they are released, a million submits:
 * the driver refuses instead of overwriting, and nothing is lost. */
#include "tests/scenario/amd_mock.h"

#ifdef __SANITIZE_THREAD__
enum { SUBMITS = 50000 }; /* each is some hundred times as slow */
#else
enum { SUBMITS = 500000 }; /* a million on the two queues */
#endif
enum { RING_BYTES = 4096 };

/* One command buffer per queue that counts: waits for nothing, raises signal `index` to n. Encoded at a fixed
 * place per n modulo the number of places, and submitted again and again. */
static void many_submits(struct amd_mock *mock, struct bw_queue *queue, uint32_t index)
{
    uint64_t submitted = 0, refused = 0;
    bool ok = true;
    while (ok && submitted < SUBMITS) {
        struct bw_encoder e = {0};
        mock->ops->encode_signal(queue, &e, amd_mock_signal(mock, index), bw_operand_constant(submitted + 1),
                                 false);
        int rc = amd_mock_submit(mock, queue, &e);
        if (rc == -EAGAIN) {
            refused++;
            /* Full means that the engine is behind: it has to move within the deadline. */
            ok = amd_mock_wait(mock, index, submitted > 100 ? submitted - 100 : 1);
        } else {
            ok = BW_EQ(rc, 0);
            submitted++;
            /* Command memory holds a few thousand buffers: never run further ahead than that. */
            if (submitted % 4096 == 0)
                ok = ok && amd_mock_wait(mock, index, submitted - 1024);
        }
    }
    amd_mock_wait(mock, index, submitted);
    BW_EQ(amd_mock_signal_read(mock, index), SUBMITS);
    (void)refused;
}

static void tiny_rings_take_many_submits(void)
{
    struct amd_mock mock;
    if (amd_mock_open(&mock, RING_BYTES)) {
        many_submits(&mock, mock.compute, 0);
        many_submits(&mock, mock.copy, 1);
    }
    amd_mock_close(&mock);
}

/* The first buffer waits for the host. Behind it the ring fills up; released, everything runs in order. */
static void stalled_engines_are_never_overrun(void)
{
    struct amd_mock mock;
    if (amd_mock_open(&mock, RING_BYTES)) {
        struct bw_queue *queues[] = {mock.compute, mock.copy};
        for (uint32_t q = 0; q < 2; q++) {
            struct bw_encoder e = {0};
            mock.ops->encode_wait(queues[q], &e, amd_mock_signal(&mock, 8 + q), bw_operand_constant(1));
            BW_EQ(amd_mock_submit(&mock, queues[q], &e), 0);
            uint64_t submitted = 0;
            for (int rc = 0; rc == 0 && submitted < SUBMITS;) {
                mock.ops->encode_signal(queues[q], &e, amd_mock_signal(&mock, q),
                                        bw_operand_constant(submitted + 1), true);
                rc = amd_mock_submit(&mock, queues[q], &e);
                BW_TRUE(rc == 0 || rc == -EAGAIN);
                submitted += rc == 0;
            }
            BW_TRUE(submitted > 100 && submitted < 1024);
            BW_EQ(amd_mock_signal_read(&mock, q), 0);
            amd_mock_signal_write(&mock, 8 + q, 1);
            amd_mock_wait(&mock, q, submitted);
            BW_EQ(amd_mock_signal_read(&mock, q), submitted);
        }
    }
    amd_mock_close(&mock);
}

BW_TEST_MAIN("amd ring pressure", {"tiny_rings_take_many_submits", tiny_rings_take_many_submits},
             {"stalled_engines_are_never_overrun", stalled_engines_are_never_overrun})
