/* Reads a trace on standard input and ends with 0 when a viewer can make sense of all of it; says what is in
 * it, or what is wrong. */
#include "tests/trace_check.h"

enum { BYTES_MAX = 64 << 20 };

int main(void)
{
    struct trace_check check;
    char *text = malloc(BYTES_MAX + 1);
    if (!text)
        return 1;
    size_t bytes = fread(text, 1, BYTES_MAX, stdin);
    text[bytes] = 0;
    bool ok = trace_check(&check, text);
    if (ok)
        printf("%u calls, %u replays, %u flows, %u counters, %u processes, %u threads\n", check.calls,
               check.replays, check.flows, check.counters, check.processes, check.thread_count);
    else
        printf("%s\n", check.why);
    trace_check_free(&check);
    free(text);
    return !ok;
}
