/*
 * The loops of the measurement, as contestants.rs has them, with LTTng-UST's events.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "events.h"

void simpletrace_bench_words(uint32_t events)
{
    for (uint32_t i = 0; i < events; i++) {
        lttng_ust_tracepoint(simpletrace_bench, words, i, (uint64_t)i << 9, UINT64_C(0x123456789abcdef0));
    }
}

void simpletrace_bench_off(uint32_t events)
{
    for (uint32_t i = 0; i < events; i++) {
        lttng_ust_tracepoint(simpletrace_bench, off, i, (uint64_t)i << 9, UINT64_C(0x123456789abcdef0));
    }
}

/* Whether a session records the first event; not the second. */
uint32_t simpletrace_bench_is_ready(void)
{
    return lttng_ust_tracepoint_enabled(simpletrace_bench, words) && !lttng_ust_tracepoint_enabled(simpletrace_bench, off);
}
