/* Everything that the program and its benches print goes through here: foreign text is escaped, and a write
 * that failed is not forgotten. */
#ifndef BW_TOOLS_PRINT_H
#define BW_TOOLS_PRINT_H

#include <stdarg.h>
#include <stdio.h>

struct bw_err;

/* printf of one line or a part of one, with everything in it escaped (bw_text_escape): names, paths and texts
 * of files may hold anything. Newlines are the format's last characters, if any.
 * Returns the characters that the format gave. */
int bw_print(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int bw_print_args(FILE *out, const char *format, va_list args) __attribute__((format(printf, 2, 0)));
/* A text of many lines: newlines and tabs stay, the rest is escaped. */
void bw_print_lines(FILE *out, const char *text);

/* Standard output for the time of the program: it remembers the errno of the first write that failed, which
 * the C library forgets. */
struct bw_stdout {
    FILE *real; /* the C library's, put back at the end */
    int failed; /* -errno */
};
/* From here on `stdout` writes through *output. Descriptors 0 to 2 that are closed are filled, so that no
 * file of ours becomes standard output. */
void bw_stdout_begin(struct bw_stdout *output);
/* Writes what is left. 0, or -errno: not all of it arrived. */
int bw_stdout_end(struct bw_stdout *output, struct bw_err *err);

#endif
