/* The files that exist on a mock machine only: sysfs and procfs texts, and device nodes. Built once, then
 * read by any thread. */
#ifndef BW_MOCK_TREE_H
#define BW_MOCK_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum bw_mock_node_kind {
    BW_MOCK_NODE_TEXT,
    BW_MOCK_NODE_KFD,
    BW_MOCK_NODE_RENDER,
    BW_MOCK_NODE_CONFIG,
    BW_MOCK_NODE_RESOURCE
};

struct bw_mock_node {
    char *path; /* absolute, no symbolic links */
    char *text; /* contents of a TEXT */
    enum bw_mock_node_kind kind;
    uint32_t index; /* of the GPU (RENDER) or of what a device calls it */
};

struct bw_mock_link {
    char *from, *to; /* a path at or below `from` means the same below `to` */
};

struct bw_mock_tree {
    BW_VEC(struct bw_mock_node) nodes; /* sorted by path once built */
    BW_VEC(struct bw_mock_link) links;
    int failed; /* -ENOMEM once, checked at the end of building */
};

enum { BW_MOCK_PATH_BYTES = 512 };

void bw_mock_tree_add_device(struct bw_mock_tree *tree, enum bw_mock_node_kind kind, uint32_t index,
                             const char *path_format, ...) __attribute__((format(printf, 4, 5)));
void bw_mock_tree_add_text(struct bw_mock_tree *tree, const char *text, const char *path_format, ...)
    __attribute__((format(printf, 3, 4)));
void bw_mock_tree_add_link(struct bw_mock_tree *tree, const char *to, const char *from_format, ...)
    __attribute__((format(printf, 3, 4)));
/* Ends building. 0 or -ENOMEM. */
int bw_mock_tree_finish(struct bw_mock_tree *tree);
void bw_mock_tree_free(struct bw_mock_tree *tree);

/* The path without repeated slashes and with links followed. False: it does not fit. */
bool bw_mock_tree_resolve(const struct bw_mock_tree *tree, const char *path,
                          char resolved[BW_MOCK_PATH_BYTES]);
/* True where the mock's machine decides what exists, even if nothing does; elsewhere the host's files show
 * through. */
bool bw_mock_tree_owns(const char *resolved);
const struct bw_mock_node *bw_mock_tree_find(const struct bw_mock_tree *tree, const char *resolved);
/* As bw_sys list; -ENOENT when nothing lies below the path, -ENOTDIR on a file. */
int bw_mock_tree_list(const struct bw_mock_tree *tree, const char *resolved,
                      int (*entry)(void *user, const char *name), void *user);

#endif
