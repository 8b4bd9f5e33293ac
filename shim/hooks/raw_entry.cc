// Where syscall(2) enters the library, and where the library's own system calls leave it.
//
//   program ── syscall() ──► graphlane_answer()        a number that concerns files (hooks/raw.cc)
//                        └─► libc's syscall(), a jump   all others: clone(2) and vfork(2) return twice, and a
//                                                       stack frame would be gone the second time
//
//   library ── syscall(), by the linker's --wrap ──► __wrap_syscall(), straight to the kernel
//
// This object must contain nothing else: the linker wraps references from other objects only, so a
// call of the library in here would come back to the hook.
#include <cstddef>

#include "shim/hooks/hooks.h"

extern "C" {
__attribute__((visibility("hidden"))) extern const unsigned char graphlane_known_numbers[];
__attribute__((visibility("hidden"))) long graphlane_answer(long number, long a, long b, long c,
                                                            long d, long e, long f);
__attribute__((visibility("hidden"))) long __wrap_syscall(long number, ...);

// libc's function, once a constructor has found it.
__attribute__((visibility("hidden"))) void* graphlane_next_syscall =
    reinterpret_cast<void*>(&__wrap_syscall);
}

#if defined(__x86_64__)
// Uses no frame and no stack: a call that is not answered goes on with its registers unchanged.
asm(R"(
  .text
  .globl syscall
  .type syscall, @function
  .balign 16
syscall:
  .cfi_startproc
  endbr64
  cmpq $512, %rdi
  jae 1f
  leaq graphlane_known_numbers(%rip), %rax
  cmpb $0, (%rax,%rdi)
  jne graphlane_answer
1:
  jmpq *graphlane_next_syscall(%rip)
  .cfi_endproc
  .size syscall, .-syscall

  .hidden __wrap_syscall
  .globl __wrap_syscall
  .type __wrap_syscall, @function
  .balign 16
__wrap_syscall:
  .cfi_startproc
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  syscall
  cmpq $-4095, %rax
  jae 2f
  ret
2:
  movq %rax, %rdi
  jmp graphlane_fail
  .cfi_endproc
  .size __wrap_syscall, .-__wrap_syscall
)");
#else
// On other machines seven arguments fit the registers, so the compiler jumps.
long hook_syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number >= 0 && number < 512 && graphlane_known_numbers[number] != 0) {
    return graphlane_answer(number, a, b, c, d, e, f);
  }
  using Call = long (*)(long, long, long, long, long, long, long);
  return reinterpret_cast<Call>(graphlane_next_syscall)(number, a, b, c, d, e, f);
}
#if defined(__aarch64__)
asm(R"(
  .text
  .hidden __wrap_syscall
  .globl __wrap_syscall
  .type __wrap_syscall, %function
__wrap_syscall:
  mov x8, x0
  mov x0, x1
  mov x1, x2
  mov x2, x3
  mov x3, x4
  mov x4, x5
  mov x5, x6
  svc 0
  cmn x0, #4095
  b.cs 1f
  ret
1:
  b graphlane_fail
  .size __wrap_syscall, .-__wrap_syscall
)");
#elif defined(__riscv)
asm(R"(
  .text
  .hidden __wrap_syscall
  .globl __wrap_syscall
  .type __wrap_syscall, @function
__wrap_syscall:
  mv a7, a0
  mv a0, a1
  mv a1, a2
  mv a2, a3
  mv a3, a4
  mv a4, a5
  mv a5, a6
  ecall
  li t0, -4096
  bgtu a0, t0, 1f
  ret
1:
  tail graphlane_fail
  .size __wrap_syscall, .-__wrap_syscall
)");
#else
#error "syscall() is not written for this machine"
#endif
#endif
