#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/power.h"
#include "base/str.h"
#include "base/utf8.h"
#include "folder.h"

static void test_error(void **state)
{
    struct error err;
    (void)state;

    assert_false(error_set(&err, "a\033[2J: %d", 3));
    assert_string_equal(err.text, "a?[2J: 3");
    error_prefix(&err, "file %s", "x");
    assert_string_equal(err.text, "file x: a?[2J: 3");
}

static void test_str(void **state)
{
    struct str s = STR_INIT;
    (void)state;

    assert_string_equal(str_text(&s), "");
    str_add_format(&s, "%s-%d", "ab", 12);
    str_insert(&s, 2, "XY", 2);
    assert_string_equal(s.data, "abXY-12");
    str_erase(&s, 0, 3);
    assert_string_equal(s.data, "Y-12");
    str_erase(&s, 3, 100);
    assert_string_equal(s.data, "Y-1");
    str_truncate(&s, 1);
    assert_int_equal(s.len, 1);
    str_done(&s);
}

static void check_decode(const char *bytes, size_t len, uint32_t want, size_t take, bool ok)
{
    uint32_t c;
    bool valid;

    assert_int_equal(utf8_decode(bytes, len, &c, &valid), take);
    assert_int_equal(c, want);
    assert_int_equal(valid, ok);
}

static void test_utf8_decode(void **state)
{
    (void)state;
    check_decode("A", 1, 'A', 1, true);
    check_decode("\xC3\xA9", 2, 0xE9, 2, true);
    check_decode("\xE4\xB8\xAD", 3, 0x4E2D, 3, true);
    check_decode("\xF0\x9F\x98\x80", 4, 0x1F600, 4, true);
    check_decode("\xF0\x9F\x98", 3, 0xFFFD, 3, false); /* cut off: one maximal subpart */
    check_decode("\xC0\x80", 2, 0xFFFD, 1, false);     /* overlong */
    check_decode("\xED\xA0\x80", 3, 0xFFFD, 1, false); /* surrogate */
    check_decode("\xF4\x90\x80\x80", 4, 0xFFFD, 1, false);
    check_decode("\x80", 1, 0xFFFD, 1, false);
    check_decode("\xE4\xB8"
                 "A",
                 3, 0xFFFD, 2, false);
}

static void test_utf8_encode_all(void **state)
{
    char out[4];
    uint32_t back;
    bool valid;
    (void)state;

    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF)
            continue;
        size_t n = utf8_encode(c, out);
        assert_int_equal(utf8_decode(out, n, &back, &valid), n);
        assert_true(valid);
        assert_int_equal(back, c);
        for (size_t cut = 1; cut < n; cut++)
            assert_int_equal(utf8_unfinished(out, cut), cut);
        assert_int_equal(utf8_unfinished(out, n), 0);
    }
}

static void test_utf8_clean(void **state)
{
    struct str s = STR_INIT;
    (void)state;

    assert_false(utf8_add_clean(&s, "a\xFFz\xE4\xB8", 5));
    assert_string_equal(s.data, "a\xEF\xBF\xBDz\xEF\xBF\xBD");
    assert_true(utf8_is_valid(s.data, s.len));
    str_done(&s);
}

static void test_utf8_controls(void **state)
{
    char text[] = "a\tb\x1B[2J\x7F\xC2\x9B"
                  "1m\xC2\xA0\xC3\xA9";
    (void)state;

    utf8_hide_controls(text);
    assert_string_equal(text, "a?b?[2J???1m\xC2\xA0\xC3\xA9");
}

static void test_file(void **state)
{
    struct str s = STR_INIT;
    struct error err;
    struct stat st;
    (void)state;

    assert_int_equal(folder_make(NULL), 0);
    char *path = file_join(folder, "a/b/c.txt");
    assert_true(file_write_atomic(path, "hello", 5, 0600, &err));
    assert_true(file_write_atomic(path, "world!", 6, 0600, &err));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    mode_t mask = umask(027);
    assert_true(file_write_atomic(path, "world!", 6, 0644, &err));
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_true(file_read(path, 100, &s, &err));
    assert_string_equal(s.data, "world!");
    assert_false(file_read(path, 3, &s, &err));
    assert_int_equal(s.len, 6);
    assert_false(file_read(folder, 100, &s, &err));
    assert_non_null(strstr(err.text, folder));
    free(path);
    assert_int_equal(folder_remove(NULL), 0);
    str_done(&s);
}

/* ---- power ---------------------------------------------------------------------------------- */

/* The attributes of one supply, in pairs: name and value. */
static void write_supply(const char *supplies, const char *name, const char *const *attributes)
{
    char *supply = file_join(supplies, name);
    struct error err;

    for (; attributes[0] != NULL; attributes += 2) {
        char *path = file_join(supply, attributes[0]);
        char line[32];
        snprintf(line, sizeof line, "%s\n", attributes[1]);
        assert_true(file_write_atomic(path, line, strlen(line), 0600, &err));
        free(path);
    }
    free(supply);
}

static void test_power(void **state)
{
    static const char *const plugged[] = {"type", "Mains", "online", "1", NULL};
    static const char *const unplugged[] = {"type", "Mains", "online", "0", NULL};
    static const char *const emptied[] = {"type", "Battery", "status", "Discharging", NULL};
    static const char *const charged[] = {"type", "Battery", "status", "Charging", NULL};
    static const char *const mouse[] = {"type",  "Battery", "status", "Discharging",
                                        "scope", "Device",  NULL};
    static const char *const scope[] = {"scope", "System", NULL};
    (void)state;

    assert_false(power_on_battery("/nowhere"));
    assert_int_equal(folder_make(NULL), 0);
    assert_false(power_on_battery(folder)); /* a desktop */
    write_supply(folder, "hidpp_battery_0", mouse);
    assert_false(power_on_battery(folder));
    write_supply(folder, "BAT0", emptied);
    assert_true(power_on_battery(folder));
    write_supply(folder, "BAT0", scope);
    assert_true(power_on_battery(folder));
    write_supply(folder, "AC", unplugged);
    assert_true(power_on_battery(folder));
    write_supply(folder, "AC", plugged);
    assert_false(power_on_battery(folder));
    write_supply(folder, "AC", unplugged);
    write_supply(folder, "BAT0", charged); /* by a plug that the kernel does not call mains */
    assert_false(power_on_battery(folder));
    assert_int_equal(folder_remove(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error),       cmocka_unit_test(test_str),
        cmocka_unit_test(test_utf8_decode), cmocka_unit_test(test_utf8_encode_all),
        cmocka_unit_test(test_utf8_clean),  cmocka_unit_test(test_utf8_controls),
        cmocka_unit_test(test_file),        cmocka_unit_test(test_power),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
