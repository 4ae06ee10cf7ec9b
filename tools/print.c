/* Printing: see print.h. */
#include "tools/print.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bellwire/err.h>
#include <bellwire/text.h>

typedef size_t escape_function(const char *text, size_t text_bytes, char *to, size_t to_bytes);

static void put_escaped(FILE *out, escape_function *escape, const char *text, size_t text_bytes)
{
    size_t bytes = escape(text, text_bytes, NULL, 0);
    char *escaped = malloc(bytes + 1);
    if (!escaped)
        return;
    escape(text, text_bytes, escaped, bytes + 1);
    fwrite(escaped, 1, bytes, out);
    free(escaped);
}

int bw_print_args(FILE *out, const char *format, va_list args)
{
    char *text = NULL;
    size_t format_bytes = strlen(format), newlines = 0;
    while (newlines < format_bytes && format[format_bytes - 1 - newlines] == '\n')
        newlines++;
    assert(!memchr(format, '\n', format_bytes - newlines));
    int length = vasprintf(&text, format, args);
    if (length < 0)
        return 0;
    put_escaped(out, bw_text_escape, text, (size_t)length - newlines);
    fwrite(format + format_bytes - newlines, 1, newlines, out);
    free(text);
    return length;
}

int bw_print(FILE *out, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = bw_print_args(out, format, args);
    va_end(args);
    return length;
}

void bw_print_lines(FILE *out, const char *text)
{
    put_escaped(out, bw_text_escape_lines, text, strlen(text));
}

/* What stdio calls to write: all of it, or the errno is kept. */
static ssize_t stdout_write(void *cookie, const char *data, size_t size_bytes)
{
    struct bw_stdout *output = cookie;
    for (size_t done = 0; done < size_bytes;) {
        ssize_t put = write(STDOUT_FILENO, data + done, size_bytes - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            output->failed = output->failed ? output->failed : put ? -errno : -EIO;
            return 0; /* what fopencookie(3) calls an error */
        }
        done += (size_t)put;
    }
    return (ssize_t)size_bytes;
}

void bw_stdout_begin(struct bw_stdout *output)
{
    const cookie_io_functions_t functions = {.write = stdout_write};
    int fd;
    do /* read-only: a write to a closed standard output fails as it should */
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
    *output = (struct bw_stdout){.real = stdout};
    FILE *file = fopencookie(output, "w", functions);
    if (!file)
        return; /* no memory: the C library's own serves */
    setvbuf(file, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    stdout = file; /* a variable that programs may set: the C library's manual, "Standard Streams" */
}

int bw_stdout_end(struct bw_stdout *output, struct bw_err *err)
{
    if (stdout == output->real)
        output->failed = fflush(stdout) ? -errno : ferror(stdout) ? -EIO : 0;
    else
        fclose(stdout);
    stdout = output->real;
    if (!output->failed)
        return 0;
    bw_fail(err, output->failed, "file", "standard output cannot be written");
    bw_err_hint(err, "%s", strerrordesc_np(-output->failed));
    return output->failed;
}
