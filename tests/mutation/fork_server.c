// Preloaded into the program: loads the engine once and then runs main in a fork for each request, so that an input
// costs what it computes and not the start of a process. See mutate.py.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*main_function)(int, char**, char**);
static main_function real_main;

enum { most_arguments = 1024 };

// Reads exactly `size` bytes of requests; leaves at their end.
static void take(void* to, size_t size) {
  for (size_t got = 0; got < size;) {
    const ssize_t n = read(STDIN_FILENO, (char*)to + got, size - got);
    if (n <= 0) _exit(0);
    got += (size_t)n;
  }
}

static void give(const void* from, size_t size) {
  if (write(STDOUT_FILENO, from, size) != (ssize_t)size) _exit(0);
}

static void limit(int resource, const char* soft, unsigned long grace) {
  const rlim_t n = strtoul(soft, NULL, 10);
  const struct rlimit r = {n, n + grace};
  if (n > 0) setrlimit(resource, &r);
}

static void redirect(const char* path, int flags, int to) {
  const int file = open(path, flags, 0600);
  if (file < 0) _exit(125);
  dup2(file, to);
  close(file);
}

// A request is its size in bytes and as many bytes of strings that end in NUL: folder, file for stdout, file for
// stderr, seconds of CPU time, bytes of address space (0: no limit), and the arguments, the program's name first. The
// answer is the child's process, as soon as it runs, and its wait status and peak kB when it has ended.
static int serve(int argc, char** argv, char** environment) {
  (void)argc, (void)argv;
  const char* const engine = getenv("MUTATION_ENGINE");
  if (engine && !dlopen(engine, RTLD_NOW | RTLD_LOCAL)) fprintf(stderr, "%s\n", dlerror()), _exit(125);
  unsetenv("MUTATION_ENGINE");
  unsetenv("LD_PRELOAD");
  for (;;) {
    uint32_t size;
    take(&size, sizeof size);
    char* const text = malloc(size);
    take(text, size);
    char* words[most_arguments + 6];
    int n = 0;
    for (char* at = text; at < text + size && n < most_arguments + 5; at += strlen(at) + 1) words[n++] = at;
    words[n] = NULL;
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      if (chdir(words[0])) _exit(125);
      redirect("/dev/null", O_RDONLY, STDIN_FILENO);
      redirect(words[1], O_RDWR | O_CREAT | O_TRUNC, STDOUT_FILENO);
      redirect(words[2], O_RDWR | O_CREAT | O_TRUNC, STDERR_FILENO);
      limit(RLIMIT_CPU, words[3], 5);
      limit(RLIMIT_AS, words[4], 0);
      exit(real_main(n - 5, words + 5, environment));
    }
    int64_t answer[3] = {child, 0, 0};
    give(answer, sizeof answer[0]);
    int status = 0;
    struct rusage used = {0};
    wait4(child, &status, 0, &used);
    answer[1] = status, answer[2] = used.ru_maxrss;
    give(answer + 1, 2 * sizeof answer[0]);
    free(text);
  }

}

int __libc_start_main(main_function main, int argc, char** argv, void (*init)(void), void (*fini)(void),
                      void (*loader_fini)(void), void* stack_end) {
  real_main = main;
  int (*start)(main_function, int, char**, void (*)(void), void (*)(void), void (*)(void), void*);
  *(void**)&start = dlsym(RTLD_NEXT, "__libc_start_main");
  return start(serve, argc, argv, init, fini, loader_fini, stack_end);
}
