/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fake_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes the folders before the last slash of path. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) && errno != EEXIST)
            fail_msg("mkdir %s: %s", path, strerror(errno));
        *slash = '/';
    }
}

static void full_path(const fake_tree *tree, char out[SN_TEST_PATH], const char *format,
                      va_list args)
{
    int n = snprintf(out, SN_TEST_PATH, "%s/", tree->root);
    vsnprintf(out + n, SN_TEST_PATH - (size_t)n, format, args);
}

static void write_file(char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 && errno == ENOENT) {
        make_folders(path);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        fail_msg("%s: %s", path, strerror(errno));
    close(fd);
}

void fake_file(const fake_tree *tree, const char *text, const char *format, ...)
{
    char path[SN_TEST_PATH];
    va_list args;
    va_start(args, format);
    full_path(tree, path, format, args);
    va_end(args);
    write_file(path, text);
}

void fake_link(const fake_tree *tree, const char *target, const char *format, ...)
{
    char path[SN_TEST_PATH];
    va_list args;
    va_start(args, format);
    full_path(tree, path, format, args);
    va_end(args);
    unlink(path);
    if (symlink(target, path)) {
        make_folders(path);
        if (symlink(target, path))
            fail_msg("symlink %s: %s", path, strerror(errno));
    }
}

void fake_tree_make(fake_tree *tree)
{
    char text[512];
    test_make_folder(tree->root);
    if (chmod(tree->root, 0755)) /* a test may look with another user's eyes */
        fail_msg("chmod %s: %s", tree->root, strerror(errno));
    fake_file(tree, "100000.00 200000.00\n", "proc/uptime");
    fake_file(tree,
              "MemTotal:       16777216 kB\nMemFree:  1048576 kB\nMemAvailable:    8388608 kB\n"
              "SwapTotal:       2097152 kB\nSwapFree:        1048576 kB\n",
              "proc/meminfo");
    int n = snprintf(text, sizeof text,
                     "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n");
    if (getuid() && getuid() != 1000)
        snprintf(text + n, sizeof text - (size_t)n, "me:x:%u:100::/:/bin/sh\n", (unsigned)getuid());
    fake_file(tree, text, "etc/passwd");
    fake_file(tree, "0::/user.slice\n", "proc/self/cgroup");
    fake_link(tree, "pid:[4026531836]", "proc/self/ns/pid");
}

void fake_drm_card(const fake_tree *tree, int n, const char *address, const char *driver,
                   unsigned vendor, unsigned device)
{
    char text[128];
    snprintf(text, sizeof text, "0x%04x\n", vendor);
    fake_file(tree, text, "sys/bus/pci/devices/%s/vendor", address);
    snprintf(text, sizeof text, "0x%04x\n", device);
    fake_file(tree, text, "sys/bus/pci/devices/%s/device", address);
    fake_file(tree, "0x030000\n", "sys/bus/pci/devices/%s/class", address);
    snprintf(text, sizeof text, "../../../../bus/pci/drivers/%s", driver);
    fake_link(tree, text, "sys/bus/pci/devices/%s/driver", address);
    snprintf(text, sizeof text, "../../../bus/pci/devices/%s", address);
    fake_link(tree, text, "sys/class/drm/card%d/device", n);
    fake_link(tree, text, "sys/class/drm/renderD%d/device", 128 + n);
}

void fake_nvidia_card(const fake_tree *tree, int minor, const char *address, const char *model)
{
    char text[256];
    fake_file(tree, "0x10de\n", "sys/bus/pci/devices/%s/vendor", address);
    fake_file(tree, "0x1402\n", "sys/bus/pci/devices/%s/device", address);
    fake_file(tree, "0x030000\n", "sys/bus/pci/devices/%s/class", address);
    fake_link(tree, "../../../../bus/pci/drivers/nvidia", "sys/bus/pci/devices/%s/driver", address);
    snprintf(text, sizeof text, "Model: \t\t %s\nIRQ:   \t\t 33\nDevice Minor: \t %d\n", model,
             minor);
    fake_file(tree, text, "proc/driver/nvidia/gpus/%s/information", address);
}

void fake_process(const fake_tree *tree, const fake_proc *p)
{
    char text[2048], base[64];
    const char *comm = p->comm ? p->comm : "python3";
    int uid = p->uid ? p->uid : (int)getuid();
    unsigned long long start = p->start_ticks ? p->start_ticks : 100ull * (unsigned)p->pid;
    snprintf(base, sizeof base, "proc/%d", p->pid);
    snprintf(
        text, sizeof text,
        "%d (%s) %c %d %d 1 %d -1 %u 1 0 0 0 %llu 0 0 0 20 0 1 0 %llu 1000000 %llu 1844674 0\n",
        p->pid, comm, p->state ? p->state : 'S', p->parent ? p->parent : 1,
        p->group ? p->group : p->pid, p->tty, p->kernel ? 0x00200040u : 0x400000u, p->cpu_ticks,
        start, p->rss_pages);
    fake_file(tree, text, "%s/stat", base);
    int n = snprintf(text, sizeof text,
                     "Name:\t%s\nState:\tS\nPid:\t%d\nUid:\t%d\t%d\t%d\t%d\nNSpid:\t%d", comm,
                     p->pid, uid, uid, uid, uid, p->pid);
    for (int i = 1; i < p->levels; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "\t%d", 7);
    snprintf(text + n, sizeof text - (size_t)n, "\nVmRSS:\t1 kB\n");
    fake_file(tree, text, "%s/status", base);
    snprintf(text, sizeof text, "%s", p->command ? p->command : "python3|train.py");
    char path[SN_TEST_PATH];
    char name[80];
    snprintf(name, sizeof name, "%s/cmdline", base);
    test_path(path, tree->root, name);
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] == '|')
            text[i] = '\0';
    test_write(path, text, length ? length + 1 : 0);
    fake_file(tree, p->cgroup ? p->cgroup : "0::/user.slice\n", "%s/cgroup", base);
    fake_file(tree, p->maps ? p->maps : "", "%s/maps", base);
    if (p->pss_kib) {
        snprintf(text, sizeof text,
                 "00400000-7ffe0000 ---p 00000000 00:00 0 [rollup]\nRss:  %ld kB\nPss:  %ld kB\n",
                 p->pss_kib * 2, p->pss_kib);
        fake_file(tree, text, "%s/smaps_rollup", base);
    }
    snprintf(name, sizeof name, "%s/fd", base);
    test_path(path, tree->root, name);
    if (mkdir(path, 0755) && errno != EEXIST)
        fail_msg("mkdir %s: %s", path, strerror(errno));
}

void fake_descriptor(const fake_tree *tree, int pid, int fd, const char *link, const char *fdinfo)
{
    char text[4096];
    fake_link(tree, link, "proc/%d/fd/%d", pid, fd);
    snprintf(text, sizeof text, "pos:\t0\nflags:\t02100002\nmnt_id:\t26\nino:\t284\n%s",
             fdinfo ? fdinfo : "");
    fake_file(tree, text, "proc/%d/fdinfo/%d", pid, fd);
}

void fake_tree_remove(fake_tree *tree)
{
    test_remove(tree->root);
}
