/* Goal: what another driver writes for this GPU is understood, word by word; and a chain of dispatches that
 * depend on each other costs no more words, cache operations and waits here than there. */
#include "drivers/amd/pm4.h"
#include "hcq/linked.h"
#include "tests/unit/hcq/mock_rig.h"

enum { WORDS_MAX = 1024, NODES = 200 };

struct stream {
    uint32_t words[WORDS_MAX];
    uint32_t count;
};

static bool stream_load(struct stream *stream, const char *section)
{
    char line[512];
    stream->count = 0;
    FILE *file = fopen(BW_SOURCE_DIR "/tests/golden/amd/radv.txt", "r");
    if (!BW_TRUE(file != NULL))
        return false;
    size_t length = strlen(section);
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, section, length) != 0 || line[length] != ':')
            continue;
        char *at = line + length + 1, *end;
        for (;;) {
            unsigned long word = strtoul(at, &end, 16);
            if (end == at || stream->count == WORDS_MAX)
                break;
            stream->words[stream->count++] = (uint32_t)word;
            at = end;
        }
    }
    fclose(file);
    return BW_TRUE(stream->count > 0 && stream->count < WORDS_MAX);
}

/* Of the packets from the first dispatch on, up to the last one. */
struct cost {
    uint32_t dispatches, words, cache_operations, flushes, waits;
    struct {
        uint32_t words, cache_operations, flushes, waits;
    } since; /* the last dispatch */
};

static void cost_add(struct cost *cost, uint32_t opcode, uint32_t word_count)
{
    if (cost->dispatches) {
        cost->since.words += word_count;
        cost->since.cache_operations += opcode == BW_AMD_PM4_OP_ACQUIRE_MEM;
        cost->since.flushes += opcode == BW_AMD_PM4_OP_EVENT_WRITE;
        cost->since.waits += opcode == BW_AMD_PM4_OP_WAIT_REG_MEM;
    }
    if (opcode != BW_AMD_PM4_OP_DISPATCH_DIRECT)
        return;
    cost->dispatches++;
    cost->words += cost->since.words;
    cost->cache_operations += cost->since.cache_operations;
    cost->flushes += cost->since.flushes;
    cost->waits += cost->since.waits;
    memset(&cost->since, 0, sizeof cost->since);
}

/* Adds what the words cost. False: something in them is not understood. */
static bool words_cost(const uint32_t *words, uint64_t count, struct cost *cost)
{
    for (uint64_t at = 0; at < count;) {
        struct bw_amd_decoded packet;
        bw_amd_pm4_decode(BW_AMD_PM4_GCR, words + at, count - at, &packet);
        if (!BW_STR(packet.problem, "") || !BW_TRUE(packet.word_count > 0)) {
            printf("      at word %llu: 0x%08x\n", (unsigned long long)at, words[at]);
            return false;
        }
        cost_add(cost, words[at] >> 30 == BW_AMD_PM4_TYPE_3 ? words[at] >> 8 & 0xff : 0, packet.word_count);
        at += packet.word_count;
    }
    return true;
}

static void every_word_is_understood(void)
{
    static const char *const sections[] = {"preamble", "addresses", "descriptors"};
    for (size_t i = 0; i < BW_COUNT_OF(sections); i++) {
        struct stream stream;
        struct cost cost = {0};
        if (stream_load(&stream, sections[i]) && words_cost(stream.words, stream.count, &cost))
            BW_EQ(cost.dispatches, i == 0 ? 0 : 6);
    }
}

static struct cost theirs(const char *section)
{
    struct stream stream;
    struct cost cost = {0};
    if (stream_load(&stream, section))
        words_cost(stream.words, stream.count, &cost);
    return cost;
}

/* A chain whose every node gets other addresses at each replay. */
static struct cost ours(void)
{
    struct machine machine;
    struct cost cost = {0};
    struct bw_linked_command command;
    if (!machine_open(&machine, RIG_STEPPED, 1, 64 << 20, 0))
        return cost;
    struct rig *rig = &machine.rig;
    struct bw_graph *graph = rig_graph(rig);
    for (uint32_t i = 0; i < NODES; i++)
        BW_OK(mix_add(rig, graph, 0, range_input(i + 1, 0, 64), range_input(i, 0, 64), i, -1), &rig->err);
    struct bw_linked_graph *linked = rig_link(rig, graph);
    for (uint32_t i = 0; linked && bw_linked_graph_command(linked, i, &command); i++)
        words_cost(command.words, command.word_count, &cost);
    bw_linked_graph_destroy(linked);
    machine_close(&machine);
    return cost;
}

/* From one dispatch to the next: a for all of b's. */
static bool at_most(uint32_t a, uint32_t a_dispatches, uint32_t b, uint32_t b_dispatches)
{
    return (uint64_t)a * (b_dispatches - 1) <= (uint64_t)b * (a_dispatches - 1);
}

static void a_chain_costs_no_more_than_radvs(void)
{
    struct cost radv = theirs("addresses"), bellwire = ours();
    if (!BW_EQ(radv.dispatches, 6) || !BW_EQ(bellwire.dispatches, NODES))
        return;
    BW_TRUE(radv.cache_operations && radv.flushes); /* there is something to compare with */
    BW_TRUE(at_most(bellwire.words, NODES, radv.words, 6));
    BW_TRUE(at_most(bellwire.cache_operations, NODES, radv.cache_operations, 6));
    BW_TRUE(at_most(bellwire.flushes, NODES, radv.flushes, 6));
    BW_EQ(bellwire.waits, 0);
    struct cost sets = theirs("descriptors");
    printf(" [words per node: %.2f, RADV %.2f with addresses, %.2f with descriptor sets] ",
           bellwire.words / (NODES - 1.0), radv.words / 5.0, sets.words / 5.0);
}

BW_TEST_MAIN("hcq.radv", {"every word is understood", every_word_is_understood},
             {"a chain costs no more than RADV's", a_chain_costs_no_more_than_radvs})
