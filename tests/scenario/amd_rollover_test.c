/* Goal (S7): signals keep their 64-bit values while the low word passes 2^32, and waits on the device hold
 * within their 32-bit window, across two queues. */
#include "tests/scenario/amd_mock.h"

/* Two queues take turns: each waits for the other's signal and raises its own, `rounds` times from `start`
 * on. */
static void ping_pong(uint64_t start, uint32_t rounds)
{
    struct amd_mock mock;
    if (amd_mock_open(&mock, 0)) {
        amd_mock_signal_write(&mock, 0, start);
        amd_mock_signal_write(&mock, 1, start);
        for (uint64_t i = 1; i <= rounds; i++) {
            struct bw_encoder compute = {0}, copy = {0};
            mock.ops->encode_wait(mock.copy, &copy, amd_mock_signal(&mock, 0),
                                  bw_operand_constant(start + i));
            mock.ops->encode_signal(mock.copy, &copy, amd_mock_signal(&mock, 1),
                                    bw_operand_constant(start + i), true);
            BW_EQ(amd_mock_submit(&mock, mock.copy, &copy), 0);
            mock.ops->encode_wait(mock.compute, &compute, amd_mock_signal(&mock, 1),
                                  bw_operand_constant(start + i - 1));
            mock.ops->encode_signal(mock.compute, &compute, amd_mock_signal(&mock, 0),
                                    bw_operand_constant(start + i), false);
            BW_EQ(amd_mock_submit(&mock, mock.compute, &compute), 0);
        }
        amd_mock_wait(&mock, 1, start + rounds);
        BW_EQ(amd_mock_signal_read(&mock, 0), start + rounds);
        BW_EQ(amd_mock_signal_read(&mock, 1), start + rounds);
    }
    amd_mock_close(&mock);
}

static void turns_are_taken_within_one_window(void)
{
    ping_pong(0, 100);
    ping_pong((1ull << 32) - 200, 100);
    ping_pong((5ull << 32) + 7, 100);
    ping_pong(UINT64_MAX - 200, 100);
}

/* A signal goes up to 2^32 and 2^64 with all its bits, and that of the compute engine passes them; the copy
 * engine writes the two halves one after the other, so between two values that differ in both a reader may
 * see neither, and a driver whose device waits are 32 bits wide need not write such ones. Host waits compare
 * by signed difference. */
static void values_cross_the_word_and_the_end(void)
{
    enum { COUNT = 6 };
    static const uint64_t starts[] = {(1ull << 32) - 3, UINT64_MAX - 2};
    for (size_t s = 0; s < 2; s++) {
        struct amd_mock mock;
        if (amd_mock_open(&mock, 0)) {
            struct bw_queue *queues[] = {mock.compute, mock.copy};
            for (uint32_t q = 0; q < 2; q++) {
                uint64_t start = starts[s] - (q == 1 ? COUNT : 0);
                amd_mock_signal_write(&mock, q, start);
                for (uint64_t i = 1; i <= COUNT; i++) {
                    struct bw_encoder e = {0};
                    mock.ops->encode_signal(queues[q], &e, amd_mock_signal(&mock, q),
                                            bw_operand_constant(start + i), true);
                    BW_EQ(amd_mock_submit(&mock, queues[q], &e), 0);
                    amd_mock_wait(&mock, q, start + i);
                    BW_EQ(amd_mock_signal_read(&mock, q), start + i);
                }
            }
        }
        amd_mock_close(&mock);
    }
}

/* Why device waits must stay inside a window: past it the comparison, which is 32 bits and unsigned, is
 * wrong, and this driver says so by device_wait_64. */
static void device_waits_compare_low_words(void)
{
    struct amd_mock mock;
    if (amd_mock_open(&mock, 0)) {
        BW_EQ(mock.device->caps.device_wait_64, false);
        struct bw_queue *queues[] = {mock.compute, mock.copy};
        for (uint32_t q = 0; q < 2; q++) {
            /* 1 << 32 is reached by any low word: passes although the signal is behind. */
            struct bw_encoder e = {0};
            amd_mock_signal_write(&mock, 4, 5);
            mock.ops->encode_wait(queues[q], &e, amd_mock_signal(&mock, 4), bw_operand_constant(1ull << 32));
            mock.ops->encode_signal(queues[q], &e, amd_mock_signal(&mock, q), bw_operand_constant(1), true);
            BW_EQ(amd_mock_submit(&mock, queues[q], &e), 0);
            amd_mock_wait(&mock, q, 1);
        }
    }
    amd_mock_close(&mock);
}

BW_TEST_MAIN("amd rollover", {"turns_are_taken_within_one_window", turns_are_taken_within_one_window},
             {"values_cross_the_word_and_the_end", values_cross_the_word_and_the_end},
             {"device_waits_compare_low_words", device_waits_compare_low_words})
