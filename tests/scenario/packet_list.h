/* The copy packets that the engines of a mock machine execute, read from the trace that it writes: what a
 * driver says of itself is compared with these. */
#ifndef BW_TESTS_SCENARIO_PACKET_LIST_H
#define BW_TESTS_SCENARIO_PACKET_LIST_H

#include <bellwire/mock.h>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/check.h"

struct copy_packet {
    char queue[48]; /* "gpu0 sdma1 queue 2", "gpu0 context 1 dma 0" */
    uint64_t target, source, size_bytes;
};

struct packet_list {
    int fd; /* of the trace */
    off_t at;
    struct copy_packet *packets;
    uint32_t count;
};

static inline bool packet_list_open(struct packet_list *list, struct bw_sys *mock)
{
    char path[64];
    struct bw_err err;
    *list = (struct packet_list){.fd = memfd_create("packets", 0)};
    snprintf(path, sizeof path, "/proc/self/fd/%d", list->fd);
    return BW_TRUE(list->fd >= 0) && BW_OK(bw_mock_trace(mock, path, &err), &err);
}

static inline void packet_list_close(struct packet_list *list)
{
    free(list->packets);
    close(list->fd);
}

/* Forgets what was executed up to now. */
static inline void packet_list_begin(struct packet_list *list)
{
    struct stat status = {0};
    list->count = 0;
    BW_EQ(fstat(list->fd, &status), 0);
    list->at = status.st_size;
}

/* "1.0 gpu0 sdma1 queue 2: COPY_LINEAR" and seven words: header, bytes - 1, swaps, source, target. */
static inline bool packet_parse(const char *line, struct copy_packet *packet)
{
    uint32_t words[7];
    if (sscanf(line, "%*s %47[^:]: COPY_LINEAR %x %x %x %x %x %x %x", packet->queue, &words[0], &words[1],
               &words[2], &words[3], &words[4], &words[5], &words[6]) != 8)
        return false;
    packet->size_bytes = (uint64_t)words[1] + 1;
    packet->source = words[3] | (uint64_t)words[4] << 32;
    packet->target = words[5] | (uint64_t)words[6] << 32;
    return true;
}

/* What was executed since packet_list_begin. */
static inline bool packet_list_end(struct packet_list *list)
{
    off_t end = lseek(list->fd, 0, SEEK_END);
    size_t bytes = (size_t)(end - list->at);
    char *text = calloc(1, bytes + 1), *rest = text, *line;
    if (!BW_TRUE(text && pread(list->fd, text, bytes, list->at) == (ssize_t)bytes))
        return false;
    free(list->packets);
    list->packets = calloc(bytes / 64 + 1, sizeof *list->packets); /* no line with a packet is so short */
    bool ok = BW_TRUE(list->packets != NULL);
    while (ok && (line = strsep(&rest, "\n")))
        list->count += packet_parse(line, &list->packets[list->count]);
    free(text);
    return ok;
}

static inline bool packet_shares(const struct copy_packet *packet, uint64_t target, uint64_t size_bytes)
{
    return packet->target < target + size_bytes && target < packet->target + packet->size_bytes;
}

/* The packets that write there are one copy and write each byte once; so many. */
static inline uint32_t packet_list_copy(const struct packet_list *list, uint64_t target, uint64_t source,
                                        uint64_t size_bytes, uint32_t *queues)
{
    uint32_t count = 0;
    uint64_t total_bytes = 0;
    *queues = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct copy_packet *packet = &list->packets[i];
        bool another_queue = true;
        if (!packet_shares(packet, target, size_bytes))
            continue;
        BW_EQ(packet->source - source, packet->target - target);
        BW_TRUE(packet->target >= target && packet->target + packet->size_bytes <= target + size_bytes);
        for (uint32_t k = 0; k < i; k++) {
            if (!packet_shares(&list->packets[k], target, size_bytes))
                continue;
            BW_TRUE(!packet_shares(&list->packets[k], packet->target, packet->size_bytes));
            another_queue &= strcmp(list->packets[k].queue, packet->queue) != 0;
        }
        count++;
        total_bytes += packet->size_bytes;
        *queues += another_queue;
    }
    BW_EQ(total_bytes, size_bytes);
    return count;
}

#endif
