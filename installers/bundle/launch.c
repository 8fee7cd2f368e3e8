/*
 * launch: runs ../lib/<own name> with the dynamic loader and the libraries beside it, so that a dynamically linked tool works on any host:
 * an older glibc, musl, or none of its libraries installed. No libc, no shell, 1 kB.
 *
 *   <dir>/bin/nft  →  <dir>/lib/ld.so --inhibit-cache --library-path <dir>/lib --argv0 nft <dir>/lib/nft …
 *
 * Built by toolchain.ts. One copy per tool: /proc/self/exe must name the tool.
 */
#if defined(__x86_64__)
enum { WRITE = 1, EXECVE = 59, EXIT = 60, READLINKAT = 267 };
static long call(long n, long a, long b, long c, long d) {
  long r;
  register long r10 __asm__("r10") = d;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
  return r;
}
__asm__(".globl _start\n_start: xor %ebp,%ebp\n mov %rsp,%rdi\n and $-16,%rsp\n call launch\n");
#elif defined(__aarch64__)
enum { WRITE = 64, EXECVE = 221, EXIT = 93, READLINKAT = 78 };
static long call(long n, long a, long b, long c, long d) {
  register long x8 __asm__("x8") = n, x0 __asm__("x0") = a, x1 __asm__("x1") = b, x2 __asm__("x2") = c, x3 __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
}
__asm__(".globl _start\n_start: mov x29,#0\n mov x30,#0\n mov x0,sp\n bl launch\n");
#endif

enum { PATH_MAX = 4096, AT_FDCWD = -100 };

static void fail(const char *why) {
  long n = 0;
  while (why[n]) n++;
  call(WRITE, 2, (long)why, n, 0);
  call(EXIT, 127, 0, 0, 0);
}

/* Writes `base` (its first `length` bytes), `middle` and `end` to `out`. */
static char *join(char *out, const char *base, long length, const char *middle, const char *end) {
  char *p = out;
  for (long i = 0; i < length; i++) *p++ = base[i];
  while (*middle) *p++ = *middle++;
  while (*end) *p++ = *end++;
  *p = 0;
  return out;
}

void launch(long *stack) {
  long argc = stack[0];
  char **argv = (char **)(stack + 1), **env = argv + argc + 1;
  char self[PATH_MAX], loader[PATH_MAX + 16], libraries[PATH_MAX + 16], program[PATH_MAX + 16];
  long n = call(READLINKAT, AT_FDCWD, (long)"/proc/self/exe", (long)self, PATH_MAX - 1);
  if (n <= 0) fail("launch: /proc is not mounted\n");
  self[n] = 0;
  long name = n, base;
  while (name > 0 && self[name - 1] != '/') name--;
  for (base = name - 1; base > 0 && self[base - 1] != '/';) base--;
  if (base < 1) fail("launch: not in a bin directory\n");
  base--;

  char *args[argc + 8];
  long i = 0;
  args[i++] = join(loader, self, base, "/lib/ld.so", "");
  args[i++] = "--inhibit-cache";
  args[i++] = "--library-path";
  args[i++] = join(libraries, self, base, "/lib", "");
  args[i++] = "--argv0";
  args[i++] = argc > 0 ? argv[0] : self;
  args[i++] = join(program, self, base, "/lib/", self + name);
  for (long j = 1; j < argc; j++) args[i++] = argv[j];
  args[i] = 0;
  call(EXECVE, (long)loader, (long)args, (long)env, 0);
  fail("launch: the libraries beside this program are missing\n");
}
