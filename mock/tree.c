#include "mock/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

static void push_node(struct bw_mock_tree *tree, const struct bw_mock_node *node)
{
    if (!node->path || !node->text || bw_vec_push(&tree->nodes, *node)) {
        free(node->path);
        free(node->text);
        tree->failed = -ENOMEM;
    }
}

void bw_mock_tree_add_device(struct bw_mock_tree *tree, enum bw_mock_node_kind kind, uint32_t index,
                             const char *path_format, ...)
{
    char path[BW_MOCK_PATH_BYTES];
    va_list arguments;
    va_start(arguments, path_format);
    int length = vsnprintf(path, sizeof path, path_format, arguments);
    va_end(arguments);
    assert(length > 0 && (size_t)length < sizeof path);
    push_node(tree,
              &(struct bw_mock_node){.path = strdup(path), .text = strdup(""), .kind = kind, .index = index});
}

void bw_mock_tree_add_text(struct bw_mock_tree *tree, const char *text, const char *path_format, ...)
{
    char path[BW_MOCK_PATH_BYTES];
    va_list arguments;
    va_start(arguments, path_format);
    int length = vsnprintf(path, sizeof path, path_format, arguments);
    va_end(arguments);
    assert(length > 0 && (size_t)length < sizeof path);
    push_node(tree,
              &(struct bw_mock_node){.path = strdup(path), .text = strdup(text), .kind = BW_MOCK_NODE_TEXT});
}

void bw_mock_tree_add_link(struct bw_mock_tree *tree, const char *to, const char *from_format, ...)
{
    char from[BW_MOCK_PATH_BYTES];
    va_list arguments;
    va_start(arguments, from_format);
    int length = vsnprintf(from, sizeof from, from_format, arguments);
    va_end(arguments);
    assert(length > 0 && (size_t)length < sizeof from);
    struct bw_mock_link link = {strdup(from), strdup(to)};
    if (!link.from || !link.to || bw_vec_push(&tree->links, link)) {
        free(link.from);
        free(link.to);
        tree->failed = -ENOMEM;
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct bw_mock_node *)a)->path, ((const struct bw_mock_node *)b)->path);
}

int bw_mock_tree_finish(struct bw_mock_tree *tree)
{
    if (tree->nodes.count)
        qsort(tree->nodes.data, tree->nodes.count, sizeof *tree->nodes.data, by_path);
    return tree->failed;
}

void bw_mock_tree_free(struct bw_mock_tree *tree)
{
    for (size_t i = 0; i < tree->nodes.count; i++) {
        free(tree->nodes.data[i].path);
        free(tree->nodes.data[i].text);
    }
    for (size_t i = 0; i < tree->links.count; i++) {
        free(tree->links.data[i].from);
        free(tree->links.data[i].to);
    }
    bw_vec_free(&tree->nodes);
    bw_vec_free(&tree->links);
}

/* Whether path is prefix or lies below it. */
static bool below(const char *path, const char *prefix)
{
    size_t length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 && (path[length] == 0 || path[length] == '/');
}

bool bw_mock_tree_resolve(const struct bw_mock_tree *tree, const char *path,
                          char resolved[BW_MOCK_PATH_BYTES])
{
    size_t length = 0;
    for (const char *at = path; *at; at++) {
        if (*at == '/' && length && resolved[length - 1] == '/')
            continue;
        if (length + 1 >= BW_MOCK_PATH_BYTES)
            return false;
        resolved[length++] = *at;
    }
    while (length > 1 && resolved[length - 1] == '/')
        length--;
    resolved[length] = 0;
    /* A link may lead to a place below another one: as many rounds as there are links, no more. */
    for (size_t round = 0; round <= tree->links.count; round++) {
        const struct bw_mock_link *link = NULL;
        for (size_t i = 0; i < tree->links.count && !link; i++)
            link = below(resolved, tree->links.data[i].from) ? &tree->links.data[i] : NULL;
        if (!link)
            return true;
        char followed[BW_MOCK_PATH_BYTES];
        int written = snprintf(followed, sizeof followed, "%s%s", link->to, resolved + strlen(link->from));
        if (written < 0 || (size_t)written >= sizeof followed)
            return false;
        memcpy(resolved, followed, (size_t)written + 1);
    }
    return false;
}

bool bw_mock_tree_owns(const char *resolved)
{
    static const char *const owned[] = {
        "/dev/kfd",
        "/dev/dri",
        "/sys/devices/virtual/kfd",
        "/sys/class/kfd",
        "/sys/class/drm",
        "/sys/dev/char",
        "/sys/module/amdgpu",
        "/sys/bus/pci",
        "/sys/devices/pci0000:00",
        "/sys/devices/system/node",
    };
    for (size_t i = 0; i < BW_COUNT_OF(owned); i++) {
        if (below(resolved, owned[i]))
            return true;
    }
    return false;
}

/* The first node at or after path in sorted order. */
static size_t lower_bound(const struct bw_mock_tree *tree, const char *path)
{
    size_t low = 0, high = tree->nodes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(tree->nodes.data[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct bw_mock_node *bw_mock_tree_find(const struct bw_mock_tree *tree, const char *resolved)
{
    size_t at = lower_bound(tree, resolved);
    if (at < tree->nodes.count && strcmp(tree->nodes.data[at].path, resolved) == 0)
        return &tree->nodes.data[at];
    return NULL;
}

struct names {
    BW_VEC(char *) list;
    int failed;
};

static void add_name(struct names *names, const char *path, size_t skip)
{
    const char *start = path + skip, *end = strchrnul(start, '/');
    char *name = strndup(start, (size_t)(end - start));
    for (size_t i = 0; name && i < names->list.count; i++) {
        if (strcmp(names->list.data[i], name) == 0) {
            free(name);
            return;
        }
    }
    if (!name || bw_vec_push(&names->list, name)) {
        free(name);
        names->failed = -ENOMEM;
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int bw_mock_tree_list(const struct bw_mock_tree *tree, const char *resolved,
                      int (*entry)(void *user, const char *name), void *user)
{
    if (bw_mock_tree_find(tree, resolved))
        return -ENOTDIR;
    struct names names = {0};
    size_t skip = strlen(resolved) + 1;
    for (size_t i = lower_bound(tree, resolved); i < tree->nodes.count; i++) {
        if (strncmp(tree->nodes.data[i].path, resolved, skip - 1) != 0)
            break;
        if (below(tree->nodes.data[i].path, resolved))
            add_name(&names, tree->nodes.data[i].path, skip);
    }
    for (size_t i = 0; i < tree->links.count; i++) {
        if (below(tree->links.data[i].from, resolved) && tree->links.data[i].from[skip - 1] == '/')
            add_name(&names, tree->links.data[i].from, skip);
    }
    int rc = names.failed ? names.failed : names.list.count ? 0 : -ENOENT;
    if (names.list.count)
        qsort(names.list.data, names.list.count, sizeof *names.list.data, by_name);
    for (size_t i = 0; i < names.list.count; i++) {
        if (!rc)
            rc = entry(user, names.list.data[i]);
        free(names.list.data[i]);
    }
    bw_vec_free(&names.list);
    return rc;
}
