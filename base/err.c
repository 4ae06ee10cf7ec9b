/* Error records: see include/bellwire/err.h. */
#include <bellwire/err.h>

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <bellwire/text.h>

#include "base/text.h"

enum {
    LINE_BYTES = sizeof(struct bw_err) + 200
}; /* all texts of a struct bw_err and what stands between them */

static void copy_text(char *to, size_t to_size, const char *from)
{
    snprintf(to, to_size, "%s", from ? from : "");
}

int bw_fail(struct bw_err *err, int code, const char *subsystem, const char *what_format, ...)
{
    assert(code < 0);
    if (!err)
        return code;
    memset(err, 0, sizeof *err);
    err->code = code;
    copy_text(err->subsystem, sizeof err->subsystem, subsystem);
    va_list args;
    va_start(args, what_format);
    bw_text_fit_v(err->what, sizeof err->what, what_format, args);
    va_end(args);
    return code;
}

#define FORMAT_INTO(field)                                \
    do {                                                  \
        if (!err)                                         \
            return;                                       \
        va_list args;                                     \
        va_start(args, format);                           \
        bw_text_fit_v(field, sizeof field, format, args); \
        va_end(args);                                     \
    } while (0)

void bw_err_expected(struct bw_err *err, const char *format, ...)
{
    FORMAT_INTO(err->expected);
}

void bw_err_observed(struct bw_err *err, const char *format, ...)
{
    FORMAT_INTO(err->observed);
}

void bw_err_hint(struct bw_err *err, const char *format, ...)
{
    FORMAT_INTO(err->hint);
}

void bw_err_device(struct bw_err *err, const char *device)
{
    if (err)
        copy_text(err->device, sizeof err->device, device);
}

void bw_err_prefix(struct bw_err *err, const char *format, ...)
{
    char prefix[sizeof err->what], what[sizeof err->what];
    va_list args;
    if (!err)
        return;
    va_start(args, format);
    bw_text_fit_v(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(what, err->what, sizeof what);
    bw_text_fit(err->what, sizeof err->what, "%s%s", prefix, what);
}

int bw_err_format(const struct bw_err *err, char *text, size_t text_size)
{
    if (!err || err->code == 0)
        return snprintf(text, text_size, "no error");
    char values[200] = "", elapsed[40] = "", line[LINE_BYTES];
    if (err->expected[0] && err->observed[0])
        snprintf(values, sizeof values, ": expected %s, observed %s", err->expected, err->observed);
    else if (err->expected[0])
        snprintf(values, sizeof values, ": expected %s", err->expected);
    else if (err->observed[0])
        snprintf(values, sizeof values, ": observed %s", err->observed);
    if (err->elapsed_ns)
        snprintf(elapsed, sizeof elapsed, " after %.3f ms", (double)err->elapsed_ns / 1e6);
    const char *name = strerrorname_np(-err->code);
    int length = snprintf(line, sizeof line, "%s%s%s: %s%s%s (%s)%s%s", err->subsystem,
                          err->device[0] ? " " : "", err->device, err->what, values, elapsed,
                          name ? name : "unknown errno", err->hint[0] ? ". " : "", err->hint);
    assert(length >= 0 && (size_t)length < sizeof line);
    return (int)bw_text_escape(line, (size_t)length, text, text_size);
}
