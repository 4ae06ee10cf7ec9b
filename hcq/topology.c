/* Topologies from JSON: see bellwire/topology.h. */
#include <bellwire/topology.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

enum { TEXT_BYTES_MAX = 1 << 20 /* 64 GPUs, all linked, take a third of that */ };

/* Beyond any link, and still exact in sums. */
#define RATE_MAX    1e6
#define LATENCY_MAX 1e6

struct reader {
    const char *name;
    struct bw_err *err;
};

__attribute__((format(printf, 4, 5))) static int refuse(const struct reader *reader, const char *where,
                                                        const cJSON *item, const char *format, ...)
{
    char expected[96], *observed = item ? cJSON_PrintUnformatted(item) : NULL;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    bw_fail(reader->err, -EINVAL, "topology", "%.100s: %s", reader->name, where);
    bw_err_expected(reader->err, "%s", expected);
    bw_err_observed(reader->err, "%.60s", !item ? "nothing" : observed ? observed : "?");
    cJSON_free(observed);
    return -EINVAL;
}

static bool key_is_known(const char *key, const char *const *known)
{
    for (; *known; known++)
        if (!strcmp(key, *known))
            return true;
    return false;
}

/* Every key once, and none but those. */
static int keys_check(const struct reader *reader, const cJSON *object, const char *where,
                      const char *const *known)
{
    for (const cJSON *item = object->child; item; item = item->next) {
        char text[160];
        snprintf(text, sizeof text, "%s%.40s", where, item->string);
        if (!key_is_known(item->string, known))
            return refuse(reader, text, item, "no such key");
        for (const cJSON *other = item->next; other; other = other->next)
            if (!strcmp(other->string, item->string))
                return refuse(reader, text, other, "this key once");
    }
    return 0;
}

static int number_read(const struct reader *reader, const cJSON *object, const char *where, const char *key,
                       double least, double most, double *number)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    char text[80];
    snprintf(text, sizeof text, "%s%s", where, key);
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble) || item->valuedouble < least ||
        item->valuedouble > most)
        return refuse(reader, text, item, "a number from %g to %g", least, most);
    *number = item->valuedouble;
    return 0;
}

static int count_read(const struct reader *reader, const cJSON *object, const char *key, uint32_t most,
                      uint32_t *count)
{
    double number = 0;
    int rc = number_read(reader, object, "", key, 1, most, &number);
    if (!rc && number != floor(number))
        rc = refuse(reader, key, cJSON_GetObjectItemCaseSensitive(object, key), "a whole number");
    *count = (uint32_t)number;
    return rc;
}

static int end_read(const struct reader *reader, const struct bw_topology *topology, const cJSON *link,
                    const char *where, const char *key, uint32_t *end)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(link, key);
    char text[80];
    snprintf(text, sizeof text, "%s%s", where, key);
    if (cJSON_IsString(item) && !strcmp(item->valuestring, "host")) {
        *end = BW_TOPOLOGY_HOST;
        return 0;
    }
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble >= topology->gpu_count ||
        item->valuedouble != floor(item->valuedouble))
        return refuse(reader, text, item, "a GPU below %u, or \"host\"", topology->gpu_count);
    *end = (uint32_t)item->valuedouble;
    return 0;
}

static const struct bw_topology_link *link_find(const struct bw_topology *topology, uint32_t from,
                                                uint32_t to)
{
    for (uint32_t i = 0; i < topology->link_count; i++)
        if (topology->links[i].from == from && topology->links[i].to == to)
            return &topology->links[i];
    return NULL;
}

static int link_read(const struct reader *reader, const cJSON *item, struct bw_topology *topology)
{
    static const char *const known[] = {"from", "to", "gb_per_s", "latency_us", NULL};
    struct bw_topology_link link;
    char where[40];
    snprintf(where, sizeof where, "links[%u].", topology->link_count);
    if (!cJSON_IsObject(item))
        return refuse(reader, where, item, "an object");
    int rc = keys_check(reader, item, where, known);
    if (!rc)
        rc = end_read(reader, topology, item, where, "from", &link.from);
    if (!rc)
        rc = end_read(reader, topology, item, where, "to", &link.to);
    if (!rc)
        rc = number_read(reader, item, where, "gb_per_s", 1 / RATE_MAX, RATE_MAX, &link.gb_per_s);
    if (!rc)
        rc = number_read(reader, item, where, "latency_us", 0, LATENCY_MAX, &link.latency_us);
    if (rc)
        return rc;
    if (link.from == link.to)
        return refuse(reader, where, item, "two ends");
    if (link_find(topology, link.from, link.to))
        return refuse(reader, where, item, "one link from one end to another");
    topology->links[topology->link_count++] = link;
    return 0;
}

static int links_read(const struct reader *reader, const cJSON *root, struct bw_topology *topology)
{
    const cJSON *links = cJSON_GetObjectItemCaseSensitive(root, "links"), *item;
    uint32_t ends = topology->gpu_count + 1;
    int count = cJSON_GetArraySize(links), rc = 0;
    if (!cJSON_IsArray(links))
        return refuse(reader, "links", links, "an array");
    if ((uint32_t)count > ends * (ends - 1))
        return bw_fail(reader->err, -EINVAL, "topology", "%.100s: %d links between %u ends", reader->name,
                       count, ends);
    topology->links = calloc((size_t)count + 1, sizeof *topology->links);
    if (!topology->links)
        return bw_fail(reader->err, -ENOMEM, "topology", "%d links", count);
    cJSON_ArrayForEach(item, links)
    {
        rc = link_read(reader, item, topology);
        if (rc)
            return rc;
    }
    return 0;
}

static int texts_read(const struct reader *reader, const cJSON *root, struct bw_topology *topology)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(root, "name"), *item;
    const cJSON *sources = cJSON_GetObjectItemCaseSensitive(root, "sources");
    if (name && (!cJSON_IsString(name) || !name->valuestring[0] ||
                 strlen(name->valuestring) >= sizeof topology->name))
        return refuse(reader, "name", name, "a text of 1 to %zu characters", sizeof topology->name - 1);
    snprintf(topology->name, sizeof topology->name, "%s", name ? name->valuestring : reader->name);
    if (sources && !cJSON_IsObject(sources))
        return refuse(reader, "sources", sources, "an object of texts");
    cJSON_ArrayForEach(item, sources)
    {
        if (!cJSON_IsString(item))
            return refuse(reader, "sources", item, "an object of texts");
    }
    return 0;
}

static int root_read(const struct reader *reader, const cJSON *root, struct bw_topology *topology)
{
    static const char *const known[] = {"name",    "gpus", "engines_per_gpu", "engine_gb_per_s", "links",
                                        "sources", NULL};
    if (!cJSON_IsObject(root))
        return refuse(reader, "the document", root, "an object");
    int rc = keys_check(reader, root, "", known);
    if (!rc)
        rc = texts_read(reader, root, topology);
    if (!rc)
        rc = count_read(reader, root, "gpus", BW_TOPOLOGY_GPUS_MAX, &topology->gpu_count);
    if (!rc)
        rc = count_read(reader, root, "engines_per_gpu", BW_TOPOLOGY_ENGINES_MAX, &topology->engines_per_gpu);
    if (!rc)
        rc = number_read(reader, root, "", "engine_gb_per_s", 1 / RATE_MAX, RATE_MAX,
                         &topology->engine_gb_per_s);
    return rc ? rc : links_read(reader, root, topology);
}

int bw_topology_parse(const char *name, const char *text, size_t size_bytes, struct bw_topology *topology,
                      struct bw_err *err)
{
    struct reader reader = {name, err};
    const char *end = text;
    *topology = (struct bw_topology){0};
    if (size_bytes > TEXT_BYTES_MAX)
        return bw_fail(err, -E2BIG, "topology", "%.100s: %zu bytes, at most %d", name, size_bytes,
                       TEXT_BYTES_MAX);
    cJSON *root = cJSON_ParseWithLengthOpts(text, size_bytes, &end, false);
    size_t offset = end ? (size_t)(end - text) : 0;
    while (root && offset < size_bytes && strchr(" \t\r\n", text[offset]) && text[offset])
        offset++;
    int rc = !root || offset < size_bytes
                 ? bw_fail(err, -EINVAL, "topology", "%.100s: not JSON at offset %zu", name, offset)
                 : root_read(&reader, root, topology);
    cJSON_Delete(root);
    if (rc)
        bw_topology_free(topology);
    return rc;
}

void bw_topology_free(struct bw_topology *topology)
{
    free(topology->links);
    *topology = (struct bw_topology){0};
}

int bw_topology_route(const struct bw_topology *topology, uint32_t from, uint32_t to,
                      uint32_t route[BW_TOPOLOGY_ROUTE_MAX])
{
    if (from == to)
        return 0;
    const struct bw_topology_link *direct = link_find(topology, from, to);
    if (direct) {
        route[0] = (uint32_t)(direct - topology->links);
        return 1;
    }
    const struct bw_topology_link *up = link_find(topology, from, BW_TOPOLOGY_HOST),
                                  *down = link_find(topology, BW_TOPOLOGY_HOST, to);
    if (!up || !down)
        return -ENOENT;
    route[0] = (uint32_t)(up - topology->links);
    route[1] = (uint32_t)(down - topology->links);
    return 2;
}
