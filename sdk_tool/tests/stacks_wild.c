/* Runs on stacks on which no signal could be handled, and asks where its own signals are. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

static volatile unsigned long result;
static double cpu(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
__attribute__((noinline)) void burn(void) {
    for (int i = 0; i < 100000; ++i) result = result * 3 + 1;
}

static char* page(void) {
    char* place = mmap(0, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(place + 4096, 4096, PROT_READ | PROT_WRITE);
    return place + 4096;
}

/* As goroutines and fibers are: a page, and none beside it. */
static __thread ucontext_t outside, inside;
__attribute__((noinline)) void on_a_page(void) {
    for (const double end = cpu() + 0.2; cpu() < end;) burn();
    result = 0;
}
static void coroutine(void) {
    getcontext(&inside);
    inside.uc_stack.ss_sp = page();
    inside.uc_stack.ss_size = 4096;
    inside.uc_link = &outside;
    makecontext(&inside, on_a_page, 0);
    swapcontext(&outside, &inside);
}

/* Code that uses the stack pointer for something else. */
__attribute__((noinline)) void without_stack(unsigned long pointer) {
    for (const double end = cpu() + 0.2; cpu() < end;)
        __asm__ volatile("mov %%rsp, %%r12\n mov %0, %%rsp\n mov $3000000, %%rcx\n 1: dec %%rcx\n jnz 1b\n"
                         "mov %%r12, %%rsp" : : "r"(pointer) : "r12", "rcx", "memory");
    result = 0;
}

static volatile int handled;
static void handler(int number) {
    stack_t now;
    sigaltstack(0, &now);
    handled = now.ss_flags & SS_ONSTACK ? number : -1;
}

/* `own`: its own stack for signals; null: none. */
static void* hard(void* own) {
    coroutine();
    without_stack(16);
    without_stack((unsigned long)page() + 64);
    if (own == 0) return 0;
    stack_t mine = {own, 0, 32768}, now;
    if (sigaltstack(&mine, 0) != 0) exit(11);
    coroutine();
    without_stack(-8);
    raise(SIGUSR1);
    if (handled != SIGUSR1) exit(12);
    sigaltstack(0, &now);
    if (now.ss_sp != own || now.ss_size != 32768 || now.ss_flags) exit(13);
    return 0;
}

int main(void) {
    struct sigaction action = {0};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, 0);
    pthread_t threads[2];
    hard(0);
    pthread_create(&threads[0], 0, hard, 0);
    pthread_join(threads[0], 0);
    pthread_create(&threads[1], 0, hard, malloc(32768));
    pthread_join(threads[1], 0);
    hard(malloc(32768));
    return 7;
}
