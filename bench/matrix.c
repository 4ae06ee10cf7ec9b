/* Bandwidth between each two ranks, one pair at a time: measured, as a table, as a picture. */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "bench/collective.h"
#include "bench/walk.h"
#include "compiler/io.h"
#include "tools/print.h"

enum {
    REPEATS = 5, /* the median of which is told */
    /* The picture, in its own units. */
    CELL = 64,
    MARGIN = 72,
    TITLE = 48,
};

static int pair_measure(const struct bw_bench_group *group, uint32_t from, uint32_t to, uint64_t size_bytes,
                        double *gb_per_s, struct bw_err *err)
{
    struct bw_linked_graph *linked = NULL;
    double seconds[REPEATS];
    int rc = bw_bench_copy_link(group->ctx, group->devices[from], group->receive[to], group->send[from],
                                size_bytes, &linked, err);
    if (!rc)
        rc = bw_bench_replay_once(linked, err);
    for (uint32_t i = 0; i < REPEATS && !rc; i++)
        rc = bw_bench_replay_many(bw_ctx_sys(group->ctx), linked, 1, &seconds[i], err);
    bw_linked_graph_destroy(linked);
    if (!rc)
        *gb_per_s = (double)size_bytes * 1e-9 / bw_bench_median(seconds, REPEATS);
    return rc;
}

int bw_bench_matrix(const struct bw_bench_group *group, uint64_t size_bytes, double *gb_per_s,
                    struct bw_err *err)
{
    int rc = 0;
    for (uint32_t from = 0; from < group->rank_count && !rc; from++)
        for (uint32_t to = 0; to < group->rank_count && !rc; to++)
            rc = pair_measure(group, from, to, size_bytes, &gb_per_s[from * group->rank_count + to], err);
    return rc;
}

void bw_bench_matrix_print(const struct bw_bench_group *group, uint64_t size_bytes, const double *gb_per_s,
                           FILE *text)
{
    bw_print(text, "\n");
    bw_print(text, "# One copy of %llu bytes at a time, GB/s (row: from, column: to)\n",
             (unsigned long long)size_bytes);
    bw_print(text, "# %6s", "");
    for (uint32_t to = 0; to < group->rank_count; to++)
        bw_print(text, " %7u", to);
    bw_print(text, "\n");
    for (uint32_t from = 0; from < group->rank_count; from++) {
        bw_print(text, "  %6u", from);
        for (uint32_t to = 0; to < group->rank_count; to++)
            bw_print(text, " %7.2f", gb_per_s[from * group->rank_count + to]);
        bw_print(text, "  %s\n", bw_device_info(group->devices[from])->name);
    }
}

static void cell_add(struct bw_text *svg, uint32_t row, uint32_t column, double value, double most)
{
    int x = MARGIN + (int)column * CELL, y = TITLE + MARGIN + (int)row * CELL;
    int lightness = 95 - (int)(55 * (most > 0 ? value / most : 0)); /* percent: the faster the darker */
    bw_text_add(svg,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"hsl(210,70%%,%d%%)\"/>"
                "<text x=\"%d\" y=\"%d\" fill=\"%s\">%.1f</text>\n",
                x, y, CELL - 2, CELL - 2, lightness, x + CELL / 2, y + CELL / 2 + 4,
                lightness < 60 ? "white" : "black", value);
}

static void labels_add(struct bw_text *svg, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int middle = (int)i * CELL + CELL / 2;
        bw_text_add(svg, "<text x=\"%d\" y=\"%d\">%u</text><text x=\"%d\" y=\"%d\">%u</text>\n",
                    MARGIN + middle, TITLE + MARGIN - 10, i, MARGIN - 16, TITLE + MARGIN + middle + 4, i);
    }
}

int bw_bench_matrix_plot(const struct bw_bench_group *group, uint64_t size_bytes, const double *gb_per_s,
                         const char *path, struct bw_err *err)
{
    struct bw_text svg = {0};
    uint32_t count = group->rank_count;
    int width = MARGIN + (int)count * CELL + MARGIN / 2;
    double most = 0;
    for (uint32_t i = 0; i < count * count; i++)
        most = gb_per_s[i] > most ? gb_per_s[i] : most;
    bw_text_add(&svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
                "font-size=\"13\" text-anchor=\"middle\">\n",
                width, width + TITLE);
    bw_text_add(&svg, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
    bw_text_add(&svg, "<text x=\"%d\" y=\"24\">GB/s from (row) to (column), copies of %llu bytes</text>\n",
                width / 2, (unsigned long long)size_bytes);
    labels_add(&svg, count);
    for (uint32_t i = 0; i < count * count; i++)
        cell_add(&svg, i / count, i % count, gb_per_s[i], most);
    bw_text_add(&svg, "</svg>\n");
    struct bw_file_piece piece = {bw_text_string(&svg), svg.length};
    int rc = svg.failed ? bw_fail(err, -ENOMEM, "bench", "picture") : bw_file_write(path, &piece, 1, err);
    bw_text_free(&svg);
    return rc;
}
