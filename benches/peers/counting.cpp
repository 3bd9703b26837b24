// What a counted process asks of callgrind: to count, to stop counting, and to write down and zero
// what it has counted so far.

#include <valgrind/callgrind.h>

extern "C" void start() { CALLGRIND_START_INSTRUMENTATION; }

extern "C" void stop() { CALLGRIND_STOP_INSTRUMENTATION; }

extern "C" void write_down(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
