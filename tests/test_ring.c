/* The event ring and the wake pipe: millions of records between two threads, through rings of small
 * and odd sizes; meant for ThreadSanitizer. Nothing here waits for time. */
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "sync/ring.h"
#include "sync/wake.h"

/* Record number n: its own number and bytes that follow from it, of a length that follows from it:
 * short ones mostly, now and then one as large as the ring takes. */
static size_t record_len(uint32_t n, size_t max)
{
    max = n % 61 == 0 || max < 40 ? max : 40;
    return sizeof n + (n * 2654435761u >> 8) % (max - sizeof n + 1);
}

static void fill_record(uint32_t n, unsigned char *out, size_t len)
{
    memcpy(out, &n, sizeof n);
    for (size_t i = sizeof n; i < len; i++)
        out[i] = (unsigned char)(n * 31 + i);
}

struct stream {
    struct ring *ring;
    struct wake *wake;
    uint32_t records;
    atomic_bool finished;
};

static void *produce(void *arg)
{
    struct stream *s = arg;
    unsigned char bytes[4096];

    for (uint32_t n = 0; n < s->records; n++) {
        size_t len = record_len(n, ring_max_record(s->ring)), half = len / 2;
        fill_record(n, bytes, len);
        const struct ring_part parts[] = {{bytes, half}, {bytes + half, len - half}};
        if (!ring_write(s->ring, parts, 2))
            break;
        if (s->wake != NULL)
            wake_signal(s->wake);
    }
    atomic_store(&s->finished, true);
    if (s->wake != NULL)
        wake_signal(s->wake);
    return NULL;
}

static void check_record(uint32_t n, const unsigned char *got, ptrdiff_t len, size_t max)
{
    unsigned char want[4096];

    if (len != (ptrdiff_t)record_len(n, max))
        fail_msg("record %u: %td bytes, should be %zu", n, len, record_len(n, max));
    fill_record(n, want, (size_t)len);
    assert_memory_equal(got, want, (size_t)len);
}

/* A reader that polls; `slow`: it gives its time away after every read, so that the ring is full.
 */
static void stream_through(size_t capacity, uint32_t records, bool slow)
{
    struct stream s = {ring_new(capacity), NULL, records, false};
    size_t max = ring_max_record(s.ring);
    unsigned char bytes[4096];
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, produce, &s), 0);
    for (uint32_t n = 0; n < records;) {
        ptrdiff_t len = ring_read(s.ring, bytes);
        if (len < 0 || slow)
            sched_yield();
        if (len >= 0)
            check_record(n++, bytes, len, max);
    }
    pthread_join(thread, NULL);
    assert_int_equal(ring_read(s.ring, bytes), -1);
    ring_free(s.ring);
}

static void test_sizes(void **state)
{
    static const size_t sizes[] = {RING_MIN, 65, 67, 97, 128, 1021, 4099};
    (void)state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        stream_through(sizes[i], 150000, false);
}

static void test_slow_reader(void **state)
{
    (void)state;
    stream_through(RING_MIN, 100000, true);
    stream_through(333, 300000, true);
}

static void test_millions(void **state)
{
    (void)state;
    stream_through(16381, 1500000, false);
}

/* A reader that sleeps in poll whenever there is nothing: every record must still come. */
static void test_wake(void **state)
{
    struct wake wake;
    struct error err;
    struct stream s = {ring_new(127), &wake, 200000, false};
    size_t max = ring_max_record(s.ring);
    unsigned char bytes[4096];
    pthread_t thread;
    uint32_t n = 0;
    (void)state;

    assert_true(wake_init(&wake, &err));
    assert_int_equal(pthread_create(&thread, NULL, produce, &s), 0);
    while (n < s.records) {
        ptrdiff_t len;
        while ((len = ring_read(s.ring, bytes)) >= 0)
            check_record(n++, bytes, len, max);
        wake_arm(&wake);
        len = ring_read(s.ring, bytes); /* the last look */
        if (len >= 0) {
            check_record(n++, bytes, len, max);
        } else if (!atomic_load(&s.finished)) {
            struct pollfd p = {wake.read_fd, POLLIN, 0};
            assert_int_equal(poll(&p, 1, -1), 1); /* a lost wake-up would hang here */
        }
        wake_disarm(&wake);
    }
    pthread_join(thread, NULL);
    wake_done(&wake);
    ring_free(s.ring);
}

/* Signals while nobody has armed leave the pipe empty. */
static void test_wake_is_silent(void **state)
{
    struct wake wake;
    struct error err;
    (void)state;

    assert_true(wake_init(&wake, &err));
    struct pollfd p = {wake.read_fd, POLLIN, 0};
    wake_signal(&wake);
    assert_int_equal(poll(&p, 1, 0), 0);
    wake_arm(&wake);
    for (int i = 0; i < 100000; i++)
        wake_signal(&wake);
    assert_int_equal(poll(&p, 1, 0), 1);
    wake_disarm(&wake);
    assert_int_equal(poll(&p, 1, 0), 0);
    wake_done(&wake);
}

/* ---- interruption --------------------------------------------------------------------------- */

static void *write_until_interrupted(void *arg)
{
    struct stream *s = arg;
    uint32_t written = 0;
    const struct ring_part part = {"01234567", 8};

    while (ring_write(s->ring, &part, 1))
        written++;
    s->records = written;
    return NULL;
}

/* Cancel while full: the writer gives up, what it wrote before is whole, and the ring goes on. */
static void test_interrupt_while_full(void **state)
{
    char bytes[4096];
    (void)state;

    for (int round = 0; round < 3000; round++) {
        struct stream s = {ring_new(100), NULL, 0, false};
        pthread_t thread;
        uint32_t read = 0;

        assert_int_equal(pthread_create(&thread, NULL, write_until_interrupted, &s), 0);
        if (round % 3 == 0)
            sched_yield();
        for (int i = 0; i < round % 5; i++)
            read += ring_read(s.ring, bytes) == 8;
        ring_interrupt(s.ring);
        pthread_join(thread, NULL); /* hangs when the interruption is lost */
        ring_resume(s.ring);
        while (ring_read(s.ring, bytes) == 8) {
            assert_memory_equal(bytes, "01234567", 8);
            read++;
        }
        assert_int_equal(read, s.records);
        const struct ring_part part = {"again", 5};
        assert_true(ring_write(s.ring, &part, 1));
        assert_int_equal(ring_read(s.ring, bytes), 5);
        ring_free(s.ring);
    }
}

static void test_interrupt_before_write(void **state)
{
    struct ring *r = ring_new(RING_MIN);
    const struct ring_part part = {"0123456789", 10};
    char bytes[64];
    (void)state;

    ring_interrupt(r);
    for (int i = 0; i < 4; i++)
        assert_true(ring_write(r, &part, 1)); /* there is room: it does not wait */
    assert_false(ring_write(r, &part, 1));
    for (int i = 0; i < 4; i++)
        assert_int_equal(ring_read(r, bytes), 10);
    assert_int_equal(ring_read(r, bytes), -1);
    ring_free(r);
}

static void test_empty_and_largest(void **state)
{
    struct ring *r = ring_new(201);
    char in[64], out[64];
    const struct ring_part none = {NULL, 0}, largest = {in, ring_max_record(r)};
    (void)state;

    memset(in, 'x', sizeof in);
    for (int i = 0; i < 1000; i++) {
        assert_true(ring_write(r, &none, 1));
        assert_true(ring_write(r, &largest, 1));
        assert_int_equal(ring_read(r, out), 0);
        assert_int_equal(ring_read(r, out), ring_max_record(r));
        assert_memory_equal(in, out, ring_max_record(r));
    }
    ring_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_and_largest),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_slow_reader),
        cmocka_unit_test(test_millions),
        cmocka_unit_test(test_wake),
        cmocka_unit_test(test_wake_is_silent),
        cmocka_unit_test(test_interrupt_while_full),
        cmocka_unit_test(test_interrupt_before_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
