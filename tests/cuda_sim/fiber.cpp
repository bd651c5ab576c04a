// Stack switching: a few instructions on x86-64, ucontext elsewhere.
#include "cuda_sim/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>

namespace crema::cuda_sim {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

}  // namespace

struct Fiber::Stack {
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ~Stack() { munmap(memory, kStackBytes); }
#if defined(__x86_64__)
  void* inside = nullptr;
  void* outside = nullptr;
#else
  ucontext_t inside, outside;
#endif
  void (*body)() = nullptr;
};

namespace {

thread_local void* running = nullptr;  // the Fiber::Stack that was resumed last

}  // namespace

#if defined(__x86_64__)

// crema_cuda_sim_switch(save, load): keeps the callee-saved registers on the stack, stores the
// stack pointer at *save, and goes on with the stack that load points to.
extern "C" void crema_cuda_sim_switch(void** save, void* load);
asm(R"(
.text
.globl crema_cuda_sim_switch
.hidden crema_cuda_sim_switch
.type crema_cuda_sim_switch, @function
crema_cuda_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size crema_cuda_sim_switch, .-crema_cuda_sim_switch
)");

namespace {

template <class Stack>
void enter() {
  auto* stack = static_cast<Stack*>(running);
  stack->body();
  for (;;) Fiber::pause();
}

}  // namespace

void Fiber::start(void (*body)()) {
  stack_->body = body;
  auto* top = static_cast<uint8_t*>(stack_->memory) + kStackBytes;
  auto* words = reinterpret_cast<void**>(top) - 8;  // six registers, the entry, what it returns to
  std::memset(words, 0, 8 * sizeof(void*));
  words[6] = reinterpret_cast<void*>(&enter<Stack>);
  stack_->inside = words;
  resume();
}

void Fiber::resume() {
  running = stack_.get();
  crema_cuda_sim_switch(&stack_->outside, stack_->inside);
}

void Fiber::pause() {
  auto* stack = static_cast<Stack*>(running);
  crema_cuda_sim_switch(&stack->inside, stack->outside);
}

#else

namespace {

template <class Stack>
void enter() {
  auto* stack = static_cast<Stack*>(running);
  stack->body();
  for (;;) Fiber::pause();
}

}  // namespace

void Fiber::start(void (*body)()) {
  stack_->body = body;
  getcontext(&stack_->inside);
  stack_->inside.uc_stack.ss_sp = stack_->memory;
  stack_->inside.uc_stack.ss_size = kStackBytes;
  stack_->inside.uc_link = nullptr;
  makecontext(&stack_->inside, &enter<Stack>, 0);
  resume();
}

void Fiber::resume() {
  running = stack_.get();
  swapcontext(&stack_->outside, &stack_->inside);
}

void Fiber::pause() {
  auto* stack = static_cast<Stack*>(running);
  swapcontext(&stack->inside, &stack->outside);
}

#endif

Fiber::Fiber() : stack_(std::make_unique<Stack>()) {}
Fiber::~Fiber() = default;

}  // namespace crema::cuda_sim
