/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_help.c - `snug help [VERB|TOPIC|WORDS...]`: the verbs, a verb's own help, or the pages of
 * docs/howto whose name, title or words hold every word asked for.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "cli.h"
#include "options.h"
#include "topics.h"

static void print_statuses(void)
{
    puts("# Statuses\n\nMade from SNUG_STATUS_LIST in include/snug/error.h.\n\n"
         "| status | exit code | meaning |\n|---|---|---|");
#define ROW(name, exit_code, meaning) printf("| `%s` | %d | %s |\n", #name, exit_code, meaning);
    SNUG_STATUS_LIST(ROW)
#undef ROW
}

static void print_verbs(void)
{
    size_t n;
    const sn_cli_verb *verbs = sn_cli_verbs(&n);
    puts("snug trains neural networks in the memory you have.\n\n"
         "  snug VERB [ARGUMENTS] [OPTIONS]      snug VERB --help      snug --version\n");
    for (size_t i = 0; i < n; i++)
        printf("  %-14s %s\n", verbs[i].name, verbs[i].help);
    puts("\nA training died? 'snug diagnose LOG' says why; 'snug help out-of-memory' lists what it "
         "can be.");
}

/* Markdown as a terminal shows it best: marks of headings, code fences and comments go. */
static void print_page(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n"), skip = 0;
        bool fence = n >= 3 && !strncmp(text, "```", 3);
        bool comment = n >= 4 && !strncmp(text, "<!--", 4);
        while (skip < n && skip < 4 && text[skip] == '#')
            skip++;
        skip = skip && text[skip] == ' ' ? skip + 1 : 0;
        if (!fence && !comment)
            printf("%.*s\n", (int)(n - skip), text + skip);
        text += n + (text[n] == '\n');
    }
}

static char folded(char c)
{
    return c == '_' || c == ' ' ? '-' : (char)tolower((unsigned char)c);
}

/* Whether text holds word, letters folded and '-', '_' and ' ' taken as one. */
static bool holds(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t i = 0;
        while (word[i] && text[i] && folded(text[i]) == folded(word[i]))
            i++;
        if (!word[i])
            return true;
    }
    return false;
}

static bool topic_matches(const sn_cli_topic *topic, int n, char **words)
{
    for (int i = 0; i < n; i++)
        if (!holds(topic->slug, words[i]) && !holds(topic->title, words[i]) &&
            !holds(topic->words, words[i]))
            return false;
    return true;
}

static int no_topic(const char *word)
{
    fputs("error: no verb and no page is called '", stderr);
    sn_cli_print_safe(stderr, word);
    fputs("'; 'snug help' lists the verbs, 'snug help out-of-memory' the pages about memory\n",
          stderr);
    return SN_EXIT_USAGE;
}

static int find_topics(int n, char **words)
{
    size_t found = 0, last = 0;
    for (size_t i = 0; i < sn_cli_n_topics; i++) {
        if (n == 1 && !strcasecmp(sn_cli_topics[i].slug, words[0])) {
            print_page(sn_cli_topics[i].text);
            return SN_EXIT_DONE;
        }
        if (topic_matches(&sn_cli_topics[i], n, words)) {
            found++;
            last = i;
        }
    }
    if (!found)
        return no_topic(words[0]);
    if (found == 1) {
        print_page(sn_cli_topics[last].text);
        return SN_EXIT_DONE;
    }
    for (size_t i = 0; i < sn_cli_n_topics; i++)
        if (topic_matches(&sn_cli_topics[i], n, words))
            printf("  %-24s %s\n", sn_cli_topics[i].slug, sn_cli_topics[i].title);
    puts("\n'snug help NAME' shows a page; 'snug diagnose LOG' says which of them it is.");
    return SN_EXIT_DONE;
}

int snug_cmd_help(int argc, char **argv)
{
    if (argc == 2 && !strcmp(argv[1], "--options")) { /* for the build: the reference page */
        sn_cli_print_reference();
        return SN_EXIT_DONE;
    }
    if (argc == 2 && !strcmp(argv[1], "--statuses")) {
        print_statuses();
        return SN_EXIT_DONE;
    }
    if (argc == 2 && !strcmp(argv[1], "--man")) { /* for the build: snug.1 */
        sn_cli_print_man();
        return SN_EXIT_DONE;
    }
    if (argc < 2 || argv[1][0] == '-') {
        print_verbs();
        return SN_EXIT_DONE;
    }
    size_t n;
    const sn_cli_verb *verbs = sn_cli_verbs(&n);
    for (size_t i = 0; i < n && argc == 2; i++)
        if (!strcmp(argv[1], verbs[i].name) && verbs[i].run != snug_cmd_help) {
            char help[] = "--help", *args[] = {argv[1], help, NULL};
            return verbs[i].run(2, args);
        }
    return find_topics(argc - 1, argv + 1);
}
