/* The parameter board and the request slot, between two threads; meant for ThreadSanitizer. */
#include "test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "sync/board.h"
#include "sync/slot.h"

enum { WORDS = 257 };

struct snapshot {
    uint64_t words[WORDS]; /* all equal: a torn copy shows */
};

static void fill(struct snapshot *s, uint64_t n)
{
    for (int i = 0; i < WORDS; i++)
        s->words[i] = n;
}

static uint64_t check_whole(const struct snapshot *s)
{
    for (int i = 1; i < WORDS; i++)
        assert_true(s->words[i] == s->words[0]);
    return s->words[0];
}

struct shared {
    struct board *board;
    struct slot *slot;
    uint64_t count, replaced;
    atomic_bool stop;
};

/* Writes without a pause. */
static void *write_always(void *arg)
{
    struct shared *s = arg;
    struct snapshot snap;

    for (uint64_t n = 1; n <= s->count; n++) {
        fill(&snap, n);
        board_publish(s->board, &snap);
    }
    return NULL;
}

static struct board *new_board(void)
{
    struct snapshot zero = {{0}};

    return board_new(sizeof zero, &zero);
}

static void test_never_torn(void **state)
{
    struct shared s = {.board = new_board(), .count = 300000};
    struct snapshot snap;
    pthread_t thread;
    uint64_t last = 0;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, write_always, &s), 0);
    while (last < s.count) {
        bool fresh = board_read(s.board, &snap);
        uint64_t n = check_whole(&snap);
        assert_true(fresh ? n > last : n == last);
        last = n;
        if (!fresh)
            sched_yield();
    }
    pthread_join(thread, NULL);
    assert_false(board_read(s.board, &snap));
    board_free(s.board);
}

/* The newest is always reached: a reader that sleeps in between never misses the last one. */
static void test_wait_reaches_the_last(void **state)
{
    struct shared s = {.board = new_board(), .count = 20000};
    struct snapshot snap;
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, write_always, &s), 0);
    do {
        board_wait(s.board, -1); /* a lost wake-up would hang here */
        board_read(s.board, &snap);
    } while (check_whole(&snap) < s.count);
    pthread_join(thread, NULL);
    board_free(s.board);
}

static void test_newest_wins(void **state)
{
    struct board *b = new_board();
    struct snapshot snap;
    (void)state;

    assert_false(board_read(b, &snap));
    assert_int_equal(check_whole(&snap), 0);
    for (uint64_t n = 1; n <= 5; n++) {
        fill(&snap, n);
        board_publish(b, &snap);
    }
    assert_true(board_read(b, &snap));
    assert_int_equal(check_whole(&snap), 5);
    assert_false(board_read(b, &snap));
    assert_int_equal(check_whole(&snap), 5);
    board_free(b);
}

static void *interrupt_once(void *arg)
{
    struct shared *s = arg;

    board_interrupt(s->board);
    return NULL;
}

static void test_interrupt(void **state)
{
    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct shared s = {.board = new_board()};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, interrupt_once, &s), 0);
        if (round % 2 == 0)
            sched_yield();
        board_wait(s.board, -1); /* under way or to come: it returns */
        pthread_join(thread, NULL);
        board_free(s.board);
    }
}

static void test_timeout(void **state)
{
    struct board *b = new_board();
    int64_t start = clock_now_ns();
    (void)state;

    board_wait(b, 20000000);
    assert_true(clock_now_ns() - start >= 20000000);
    board_free(b);
}

static void *take_all(void *arg)
{
    struct shared *s = arg;
    uint64_t sum = 0, item;
    struct snapshot snap;

    for (uint64_t taken = 0; taken < s->count;) {
        if (slot_take(s->slot, &item)) {
            sum += item;
            taken++;
        } else {
            board_wait(s->board, -1);
            board_read(s->board, &snap);
        }
    }
    s->count = sum;
    return NULL;
}

/* The taker sleeps on the board; the giver rouses it there. */
static void test_slot(void **state)
{
    enum { ITEMS = 20000 };
    struct shared s = {.board = new_board(), .slot = slot_new(sizeof(uint64_t)), .count = ITEMS};
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, take_all, &s), 0);
    for (uint64_t n = 1; n <= ITEMS;) {
        if (slot_put(s.slot, &n))
            n++;
        else
            sched_yield();
        board_interrupt(s.board);
    }
    pthread_join(thread, NULL);
    assert_int_equal(s.count, (uint64_t)ITEMS * (ITEMS + 1) / 2);
    slot_free(s.slot);
    board_free(s.board);
}

static void *replace_all(void *arg)
{
    struct shared *s = arg;
    uint64_t old;

    for (uint64_t n = 1; n <= s->count; n++) {
        if (slot_replace(s->slot, &n, &old))
            s->replaced += old;
    }
    return NULL;
}

/* What is replaced comes back to the giver; everything else is taken: once, and in order. */
static void test_slot_replaces(void **state)
{
    enum { ITEMS = 20000 };
    struct shared s = {.slot = slot_new(sizeof(uint64_t)), .count = ITEMS};
    uint64_t item = 0, taken = 0;
    pthread_t thread;
    (void)state;

    assert_int_equal(pthread_create(&thread, NULL, replace_all, &s), 0);
    while (item < ITEMS) {
        const uint64_t last = item;
        if (!slot_take(s.slot, &item))
            continue;
        assert_true(item > last);
        taken += item;
    }
    pthread_join(thread, NULL);
    assert_int_equal(taken + s.replaced, (uint64_t)ITEMS * (ITEMS + 1) / 2);
    assert_false(slot_take(s.slot, &item));
    slot_free(s.slot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_wins),
        cmocka_unit_test(test_never_torn),
        cmocka_unit_test(test_wait_reaches_the_last),
        cmocka_unit_test(test_interrupt),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_slot),
        cmocka_unit_test(test_slot_replaces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
