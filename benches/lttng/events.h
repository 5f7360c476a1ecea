/*
 * What LTTng-UST is measured with: two events with three numbers each. LTTng includes this file several times, hence its odd guard.
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER simpletrace_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "events.h"

#if !defined(SIMPLETRACE_BENCH_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define SIMPLETRACE_BENCH_EVENTS_H

#include <stdint.h>

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT_CLASS(
    simpletrace_bench, numbers,
    LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint64_t, a, a)
        lttng_ust_field_integer(uint64_t, b, b)
        lttng_ust_field_integer_hex(uint64_t, c, c)
    )
)

/* The one that is enabled. */
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    simpletrace_bench, numbers,
    simpletrace_bench, words,
    LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c)
)

/* The one that nobody enables. */
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(
    simpletrace_bench, numbers,
    simpletrace_bench, off,
    LTTNG_UST_TP_ARGS(uint64_t, a, uint64_t, b, uint64_t, c)
)

#endif

#include <lttng/tracepoint-event.h>
