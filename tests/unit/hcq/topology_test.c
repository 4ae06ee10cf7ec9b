/* Topologies: the presets are read whole, what is no topology is refused by name. */
#include <bellwire/topology.h>

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "tests/check.h"

static void presets_are_topologies(void)
{
    static const struct {
        const char *name;
        uint32_t engines, links, hops; /* hops: from GPU 0 to GPU 7 */
    } cases[] = {{"8xMI300X", 16, 72, 1}, {"8xMI350X", 16, 72, 1}, {"8xRX7900XTX", 2, 16, 2}};
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_topology topology;
        struct bw_err err = {0};
        char path[256], text[1 << 16];
        uint32_t route[BW_TOPOLOGY_ROUTE_MAX];
        snprintf(path, sizeof path, BW_SOURCE_DIR "/data/topologies/%s.json", cases[i].name);
        FILE *file = fopen(path, "r");
        if (!BW_TRUE(file != NULL))
            return;
        size_t bytes = fread(text, 1, sizeof text, file);
        fclose(file);
        if (!BW_OK(bw_topology_parse(path, text, bytes, &topology, &err), &err))
            continue;
        BW_STR(topology.name, cases[i].name);
        BW_EQ(topology.gpu_count, 8);
        BW_EQ(topology.engines_per_gpu, cases[i].engines);
        BW_EQ(topology.link_count, cases[i].links);
        BW_EQ(bw_topology_route(&topology, 0, 7, route), cases[i].hops);
        BW_EQ(topology.links[route[0]].from, 0);
        BW_EQ(topology.links[route[cases[i].hops - 1]].to, 7);
        BW_EQ(bw_topology_route(&topology, 3, 3, route), 0);
        BW_EQ(bw_topology_route(&topology, 3, 8, route), -ENOENT);
        bw_topology_free(&topology);
        for (size_t cut = 0; cut + 2 < bytes; cut += 97) /* cut off anywhere */
            BW_EQ(bw_topology_parse(path, text, cut, &topology, &err), -EINVAL);
    }
}

#define HEAD "{\"gpus\":2,\"engines_per_gpu\":1,\"engine_gb_per_s\":1,"
#define LINK(from, to, rate, latency) \
    "{\"from\":" from ",\"to\":" to ",\"gb_per_s\":" rate ",\"latency_us\":" latency "}"

static void what_is_no_topology_is_refused_by_name(void)
{
    static const struct {
        const char *text, *what, *expected;
    } cases[] = {
        {"", "bad: not JSON", ""},
        {"nonsense", "bad: not JSON at offset", ""},
        {HEAD "\"links\":[]} x", "bad: not JSON at offset 62", ""},
        {"[]", "bad: the document", "an object"},
        {"{}", "bad: gpus", "a number from 1 to 64"},
        {"{\"gpus\":65}", "bad: gpus", "a number from 1 to 64"},
        {"{\"gpus\":\"8\"}", "bad: gpus", "a number from 1 to 64"},
        {"{\"gpus\":1.5}", "bad: gpus", "a whole number"},
        {"{\"gpus\":1e999}", "bad: gpus", "a number from 1 to 64"},
        {"{\"gpus\":2}", "bad: engines_per_gpu", "a number from 1 to 64"},
        {"{\"gpus\":2,\"engines_per_gpu\":1,\"engine_gb_per_s\":0}", "bad: engine_gb_per_s",
         "a number from 1e-06"},
        {HEAD "\"linkz\":[]}", "bad: linkz", "no such key"},
        {HEAD "\"gpus\":2,\"links\":[]}", "bad: gpus", "this key once"},
        {HEAD "\"name\":7,\"links\":[]}", "bad: name", "a text"},
        {HEAD "\"sources\":{\"gpus\":[]},\"links\":[]}", "bad: sources", "an object of texts"},
        {HEAD "\"links\":7}", "bad: links", "an array"},
        {HEAD "\"links\":[7]}", "bad: links[0].", "an object"},
        {HEAD "\"links\":[{\"to\":1}]}", "bad: links[0].from", "a GPU below 2, or \"host\""},
        {HEAD "\"links\":[" LINK("0", "2", "1", "1") "]}", "bad: links[0].to", "a GPU below 2"},
        {HEAD "\"links\":[" LINK("0", "-1", "1", "1") "]}", "bad: links[0].to", "a GPU below 2"},
        {HEAD "\"links\":[" LINK("\"hosts\"", "1", "1", "1") "]}", "bad: links[0].from", "a GPU below 2"},
        {HEAD "\"links\":[" LINK("0", "0", "1", "1") "]}", "bad: links[0].", "two ends"},
        {HEAD "\"links\":[" LINK("0", "1", "-3", "1") "]}", "bad: links[0].gb_per_s", "a number from 1e-06"},
        {HEAD "\"links\":[" LINK("0", "1", "1", "-1") "]}", "bad: links[0].latency_us", "a number from 0"},
        {HEAD "\"links\":[" LINK("0", "1", "1", "1") "," LINK("0", "1", "2", "1") "]}", "bad: links[1].",
         "one link from one end to another"},
        {HEAD "\"links\":[1,2,3,4,5,6,7]}", "bad: 7 links between 3 ends", ""},
    };
    for (size_t i = 0; i < BW_COUNT_OF(cases); i++) {
        struct bw_topology topology;
        struct bw_err err = {0};
        BW_EQ(bw_topology_parse("bad", cases[i].text, strlen(cases[i].text), &topology, &err), -EINVAL);
        if (!BW_TRUE(!strncmp(err.what, cases[i].what, strlen(cases[i].what))) ||
            !BW_TRUE(!strncmp(err.expected, cases[i].expected, strlen(cases[i].expected))))
            printf("%s: %s, %s\n", cases[i].text, err.what, err.expected);
        BW_TRUE(topology.links == NULL);
    }
}

static void texts_have_a_limit(void)
{
    enum { BYTES = (1 << 20) + 1 };
    struct bw_topology topology;
    struct bw_err err;
    char *text = malloc(BYTES);
    if (!BW_TRUE(text != NULL))
        return;
    memset(text, ' ', BYTES);
    BW_EQ(bw_topology_parse("spaces", text, BYTES, &topology, &err), -E2BIG);
    memset(text, '[', BYTES);
    BW_EQ(bw_topology_parse("deep", text, BYTES - 1, &topology, &err), -EINVAL);
    free(text);
}

BW_TEST_MAIN("topology", {"presets_are_topologies", presets_are_topologies},
             {"what_is_no_topology_is_refused_by_name", what_is_no_topology_is_refused_by_name},
             {"texts_have_a_limit", texts_have_a_limit})
