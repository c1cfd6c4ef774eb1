/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV: cells and quotes, tables of numbers, lists of images; errors name line and column.
 */
#include "arrays.h"

#include "data/photos.h"
#include "format/csv.h"

static char folder[SN_TEST_PATH], path[SN_TEST_PATH];
static snug_data_options options;

static int set_up(void **state)
{
    test_make_folder(folder);
    test_path(path, folder, "t.csv");
    options = (snug_data_options)SNUG_DATA_OPTIONS_INIT;
    options.no_shuffle = 1;
    return 0;
}

static int tear_down(void **state)
{
    test_remove(folder);
    return 0;
}

static void test_cells(void **state)
{
    static const struct {
        const char *text;
        const char *cells[5];
        uint64_t line;
    } rows[] = {{"", {"a", "b c", "", "d"}, 1},
                {"", {"x,y", "say \"hi\"", "two\nlines", ""}, 3},
                {"", {"last", NULL}, 6}};
    sn_csv c;
    snug_error err = SNUG_ERROR_INIT;

    test_write_text(path, "\xef\xbb\xbf"
                          "a,b c,,d\r\n\n\"x,y\",\"say \"\"hi\"\"\",\"two\nlines\",\n\nlast");
    assert_ok(sn_csv_open(&c, path, &err), &err);
    for (size_t i = 0; i < SN_LEN(rows); i++) {
        assert_ok(sn_csv_next(&c, &err), &err);
        assert_int_equal(c.line, rows[i].line);
        for (size_t k = 0; k < c.n; k++)
            assert_string_equal(c.cells[k], rows[i].cells[k]);
    }
    assert_ok(sn_csv_next(&c, &err), &err);
    assert_int_equal(c.n, 0);
    sn_csv_close(&c);
    assert_no_leak();
}

static void test_quote_never_closed(void **state)
{
    size_t n = 5 * 1024 * 1024;
    char *text = sn_alloc(SN_TAG_TEST, n);
    sn_csv c;
    snug_error err = SNUG_ERROR_INIT;

    memset(text, 'x', n);
    memcpy(text, "a,b\n1,\"", 7);
    test_write(path, text, n);
    sn_free(text);
    assert_ok(sn_csv_open(&c, path, &err), &err);
    assert_ok(sn_csv_next(&c, &err), &err);
    assert_fails(sn_csv_next(&c, &err), SNUG_E_INPUT, &err);
    assert_int_equal(err.pos, 2);
    sn_csv_close(&c);
    assert_no_leak();
}

static void test_table_of_numbers(void **state)
{
    float x[16];
    int32_t classes[4];

    test_write_text(path, "len,kind,width\n1.5,setosa,2\n -3 ,virginica,4e2\n5,setosa,0\n");
    options.label_column = "kind";
    snug_data *data = arrays_open(path, &options);
    assert_int_equal(snug_data_n_classes(data), 2);
    assert_string_equal(snug_data_class_name(data, 1), "virginica");
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, x, classes, NULL), 3);
    assert_true(x[0] == 1.5f && x[1] == 2 && x[2] == -3 && x[3] == 400);
    assert_int_equal(classes[0] * 100 + classes[1] * 10 + classes[2], 10);
    snug_data_free(data);
    /* Without a header; whole numbers are classes, others targets. */
    test_write_text(path, "1,2,10\n3,4,2\n5,6,10\n");
    options.label_column = "3";
    data = arrays_open(path, &options);
    assert_int_equal(snug_data_n_classes(data), 2);
    assert_string_equal(snug_data_class_name(data, 0), "2");
    snug_data_free(data);
    test_write_text(path, "1,2,10\n3,4,2.5\n5,6,10\n");
    data = arrays_open(path, &options);
    assert_true(snug_data_is_regression(data));
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, NULL, NULL, x), 3);
    assert_true(x[0] == 10 && x[1] == 2.5f);
    snug_data_free(data);
    assert_no_leak();
}

static void test_bad_cells_are_named(void **state)
{
    static const struct {
        const char *text, *why;
        snug_status status;
    } bad[] = {
        {"a,b,y\n1,2,0\n1,x,1\n", "t.csv: line 3, column 2 (b): 'x' is no number", SNUG_E_INPUT},
        {"a,b,y\n1,,0\n", "line 2, column 2 (b): the cell is empty", SNUG_E_INPUT},
        {"a,b,y\n1,2,0\n1,2\n", "line 3 has 2 cells, the first line has 3", SNUG_E_INPUT},
        {"a,b,y\n1,nan,0\n", "'nan' is no number", SNUG_E_INPUT},
        {"a,b,y\n1,2,\n", "line 2, column 3 (y): the label is empty", SNUG_E_INPUT},
        {"a,b,y\n", "has column names but no rows", SNUG_E_INPUT},
        {"", "is empty", SNUG_E_INPUT},
        {"a,b,c\n1,2,3\n", "no column 'y' in", SNUG_E_INPUT},
        {"y\n1\n2\n", "no column but the label", SNUG_E_INPUT},
        {"a,y\n1,0\n2,0\n", "one class only", SNUG_E_INPUT},
    };

    options.label_column = "y";
    for (size_t i = 0; i < SN_LEN(bad); i++) {
        test_write_text(path, bad[i].text);
        assert_refused(path, &options, bad[i].status, bad[i].why);
    }
    options.label_column = NULL;
    test_write_text(path, "a,b,y\n1,2,3\n");
    assert_refused(path, &options, SNUG_E_USAGE,
                   "needs --label-column NAME (or its number); the "
                   "columns of");
}

static void put(const char *name)
{
    char to[SN_TEST_PATH];

    photos_copy(test_path(to, folder, name), 1);
}

static void test_lists_of_images(void **state)
{
    char name[SN_TEST_PATH];
    int32_t classes[4];
    float y[4];
    snug_error err = SNUG_ERROR_INIT;

    put("img/b.jpg");
    put("img/a.jpg");
    put("img/c.png");
    options.height = options.width = 8;
    options.labels_path = path;
    test_write_text(path, "filename,split,species\nimg/b.jpg,x,cat10\nimg/a.jpg,x,cat9\nimg/c.png,"
                          "x,cat10\n");
    options.label_column = "species";
    snug_data *data = arrays_open(folder, &options);
    assert_string_equal(snug_data_class_name(data, 0), "cat9");
    assert_int_equal(snug_data_class_count(data, 1), 2);
    assert_ok(snug_data_name(data, 0, name, sizeof name, &err), &err);
    assert_string_equal(name, "img/b.jpg");
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, NULL, classes, NULL), 3);
    assert_int_equal(classes[0] * 100 + classes[1] * 10 + classes[2], 101);
    snug_data_free(data);
    /* Without a header, real labels. */
    options.label_column = NULL;
    test_write_text(path, "img/b.jpg,0.25\nimg/a.jpg,2\n");
    data = arrays_open(folder, &options);
    assert_true(snug_data_is_regression(data));
    assert_int_equal(arrays_read(data, SNUG_SUBSET_TRAIN, NULL, NULL, y), 2);
    assert_true(y[0] == 0.25f && y[1] == 2);
    snug_data_free(data);
    assert_no_leak();
}

static void test_patterns(void **state)
{
    char pattern[SN_TEST_PATH];

    put("a.jpg");
    put("b.jpg");
    put("c.png");
    options.height = options.width = 8;
    test_path(pattern, folder, "*.jpg");
    assert_refused(pattern, &options, SNUG_E_USAGE, "needs --labels FILE.csv");
    options.labels_path = path;
    test_write_text(path, "file,label\na.jpg,x\nc.png,x\nb.jpg,y\n");
    snug_data *data = arrays_open(pattern, &options);
    assert_int_equal(snug_data_n(data, SNUG_SUBSET_TRAIN), 2);
    assert_contains(snug_data_note(data, 0), "1 rows of");
    snug_data_free(data);
    test_path(pattern, folder, "*.gif");
    assert_refused(pattern, &options, SNUG_E_INPUT, "names no file that matches *.gif");
    test_write_text(path, "just_one_column\n");
    assert_refused(folder, &options, SNUG_E_INPUT, "has one column");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_cells),
        T(test_quote_never_closed),
        T(test_table_of_numbers),
        T(test_bad_cells_are_named),
        T(test_lists_of_images),
        T(test_patterns),
    };

    return cmocka_run_group_tests_name("format/csv", tests, NULL, NULL);
}
