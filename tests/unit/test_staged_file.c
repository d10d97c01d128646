/* Staged files: links, full disks, and no leftovers. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/staged_file.h"

/* Error codes of the file system's calls; 0: the call is carried out. */
static int sync_code, rename_code, link_code;

static int call_fails(int code)
{
    errno = code;
    return -1;
}

int fsync(int fd)
{
    struct stat info;
    bool folder = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    return folder && sync_code ? call_fails(sync_code) : (int)syscall(SYS_fsync, fd);
}

int renameat2(int from, const char *name, int to, const char *target, unsigned flags)
{
    return rename_code ? call_fails(rename_code)
                       : (int)syscall(SYS_renameat2, from, name, to, target, flags);
}

int linkat(int from, const char *name, int to, const char *target, int flags)
{
    return link_code ? call_fails(link_code)
                     : (int)syscall(SYS_linkat, from, name, to, target, flags);
}

/* If links fail, there are no nameless files, because a link gives such a file its name. */
int open(const char *name, int flags, ...)
{
    va_list words;
    va_start(words, flags);
    unsigned mode =
        flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(words, unsigned) : 0;
    va_end(words);
    return link_code && (flags & O_TMPFILE) == O_TMPFILE
               ? call_fails(EOPNOTSUPP)
               : (int)syscall(SYS_openat, AT_FDCWD, name, flags, mode);
}

int link(const char *name, const char *target)
{
    return linkat(AT_FDCWD, name, AT_FDCWD, target, 0);
}

/* Each test has its own folder, and leaves only these files. */
static char folder[] = "/tmp/roofsweep-staged-XXXXXX";
static const char *const files[] = {"file",         "victim",       "link",        "second",
                                    "file.spare-1", "file.spare-2", "link.spare-1"};

static int folder_create(void **state)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int folder_remove(void **state)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; ++i)
        remove(files[i]);
    return chdir("/") == 0 ? rmdir(folder) : -1; /* fails if there is a temporary file */
}

#define FOLDER_TEST(name) TEST_WITH(name, folder_create, folder_remove)

static void store(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    fputs(text, stream);
    assert_int_equal(fclose(stream), 0);
}

static void assert_holds(const char *path, const char *text)
{
    char content[64] = "";
    FILE *stream = fopen(path, "r");
    assert_non_null(stream);
    assert_non_null(fgets(content, sizeof content, stream));
    fclose(stream);
    assert_string_equal(content, text);
}

/* `published` is that of staged_file_publish. */
static enum status publish_as(const char *path, char *published, struct error *error)
{
    struct staged_file file;
    TRY(staged_file_open(&file, path, error));
    assert_true(link_code || !file.named); /* the file has no name until it is shown */
    assert_ok(staged_file_show(&file, &failure));
    staged_file_hide(&file);
    assert_int_equal(write(file.fd, "new", 3), 3);
    enum status status = staged_file_publish(&file, path, published, error);
    staged_file_close(&file);
    return status;
}

static enum status publish(const char *path, struct error *error)
{
    return publish_as(path, NULL, error);
}

FOLDER_TEST(test_follows_links)
{
    struct stat info;
    store("victim", "older");
    assert_int_equal(symlink("victim", "second"), 0);
    assert_int_equal(symlink("second", "link"), 0);
    assert_ok(publish("link", &failure));
    assert_holds("victim", "new");
    assert_int_equal(lstat("link", &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink("victim"), 0); /* a dangling link: its target is created */
    assert_ok(publish("link", &failure));
    assert_holds("victim", "new");
}

FOLDER_TEST(test_keeps_existing_files)
{
    char published[LINK_TARGET];
    assert_ok(publish_as("file", published, &failure));
    assert_string_equal(published, "file");
    store("file", "precious");
    store("file.spare-1", "precious");
    assert_ok(publish_as("file", published, &failure));
    assert_string_equal(published, "file.spare-2");
    assert_holds("file.spare-2", "new");
    assert_int_equal(symlink("second", "link"), 0); /* dangling */
    assert_ok(publish_as("link", published, &failure));
    assert_string_equal(published, "link.spare-1");
    assert_holds("file", "precious");
    assert_holds("file.spare-1", "precious");
    assert_int_not_equal(access("second", F_OK), 0);
}

/* Folders that cannot be synced: 524 is ENOTSUPP of DVS. */
FOLDER_TEST(test_folders_without_sync)
{
    const int codes[] = {EINVAL, EOPNOTSUPP, ENOSYS, 524};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        sync_code = codes[i];
        enum status status = publish("file", &failure);
        sync_code = 0;
        assert_ok(status);
    }
    remove("file");
    sync_code = EIO;
    enum status status = staged_file_try("file", &failure);
    sync_code = 0;
    assert_int_equal(status, STATUS_SYSTEM);
    assert_int_not_equal(access("file", F_OK), 0);
}

/* File systems with neither RENAME_NOREPLACE nor hard links. */
FOLDER_TEST(test_folders_without_links)
{
    const int codes[] = {EINVAL, ENOSYS};
    char published[LINK_TARGET];
    link_code = EPERM;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; ++i) {
        rename_code = codes[i];
        remove("file");
        remove("file.spare-1");
        enum status tried = staged_file_try("file", &failure);
        assert_ok(tried);
        enum status first = publish_as("file", published, &failure);
        bool own = strcmp(published, "file") == 0;
        enum status second = first ? first : publish_as("file", published, &failure);
        assert_ok(second);
        assert_true(own);
        assert_string_equal(published, "file.spare-1");
        assert_holds("file", "new");
        assert_holds("file.spare-1", "new");
    }
    link_code = rename_code = 0;
}

FOLDER_TEST(test_links_of_others)
{
    enum { OTHER = 65534 };
    char path[64];
    struct target target;
    store("victim", "precious");
    assert_int_equal(symlink("victim", "link"), 0);
    if (lchown("link", OTHER, (gid_t)-1) != 0)
        skip();                                              /* needs root */
    assert_ok(target_open("link", true, &target, &failure)); /* only root can write here */
    target_close(&target);
    assert_int_equal(chmod(folder, 01777), 0);
    assert_fails(publish("link", &failure), STATUS_SYSTEM,
                 "'link' is a link of user nobody to victim");
    assert_holds("victim", "precious");
    assert_int_equal(chmod(folder, 0700) | chown(folder, OTHER, (gid_t)-1), 0);
    assert_int_equal(publish("link", &failure), STATUS_SYSTEM);
    assert_int_equal(lchown("link", 0, (gid_t)-1), 0);
    assert_ok(publish("link", &failure)); /* root's link, in any folder */
    assert_holds("victim", "new");

    store("victim", "precious");
    assert_int_equal(symlink(folder, "second"), 0); /* a link within the path */
    snprintf(path, sizeof path, "%s/second/victim", folder);
    assert_int_equal(lchown("second", OTHER, (gid_t)-1), 0);
    assert_fails(publish(path, &failure), STATUS_SYSTEM, "'second' is a link of user nobody");
    assert_holds("victim", "precious");
}

FOLDER_TEST(test_links_are_read_from_their_folder)
{
    char path[64];
    struct target target;
    assert_int_equal(symlink("victim", "link"), 0);
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(chdir("/"), 0);
    enum status status = target_open(path, true, &target, &failure);
    assert_int_equal(chdir(folder), 0);
    assert_ok(status);
    store("victim", "new");
    assert_true(file_same(target.path, "victim"));
    target_close(&target);
}

/* Another user replaces the opened folder by a link. */
FOLDER_TEST(test_folders_stay_open)
{
    char path[64];
    struct target target;
    assert_int_equal(mkdir("file", 0700), 0);
    snprintf(path, sizeof path, "%s/file/new", folder);
    assert_ok(target_open(path, true, &target, &failure));
    assert_int_equal(rename("file", "second") | symlink(folder, "file"), 0);
    store(target.path, "new");
    target_close(&target);
    assert_holds("second/new", "new");
    assert_int_equal(unlink("second/new"), 0);
}

static size_t temporary_files(void)
{
    size_t count = 0;
    DIR *entries = opendir(".");
    const struct dirent *entry;
    assert_non_null(entries);
    while ((entry = readdir(entries)))
        count += strncmp(entry->d_name, ".roofsweep-", strlen(".roofsweep-")) == 0;
    closedir(entries);
    return count;
}

/* Starts a process that shows a staged file for `output` and waits to be killed. */
static pid_t killed_with_a_name(const char *output)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct staged_file file;
        if (staged_file_open(&file, output, &failure) || staged_file_show(&file, &failure) ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

/* A sweep removes files that killed processes left for the same output, and no other files. */
FOLDER_TEST(test_leftovers_are_swept)
{
    static const char foreign[] = ".roofsweep-0123456789abcdef";
    store(foreign, "somebody's");
    pid_t owner = killed_with_a_name("file"), other = killed_with_a_name("second");
    assert_int_equal(temporary_files(), 3);
    staged_file_sweep("file"); /* the file's process lives */
    assert_int_equal(temporary_files(), 3);
    kill(owner, SIGKILL);
    waitpid(owner, NULL, 0);
    staged_file_sweep("second"); /* another output */
    assert_int_equal(temporary_files(), 3);
    staged_file_sweep("file");
    assert_int_equal(temporary_files(), 2);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    assert_int_equal(symlink("second", "link"), 0);
    staged_file_sweep("link"); /* follows the link */
    assert_int_equal(temporary_files(), 1);
    assert_holds(foreign, "somebody's");
    assert_int_equal(unlink(foreign), 0);
}
