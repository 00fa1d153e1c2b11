# Functions without tables of how to unwind them, as hand-written kernels are: each spins, in a frame of its own kind.
# All take the number of turns in %rdi.
    .text
    .macro spins
1:  imul $7, %rax, %rax
    add $3, %rax
    vxorps %ymm0, %ymm0, %ymm0
    vfmadd231pd 8(%rsp), %ymm1, %ymm2
    dec %rdi
    jnz 1b
    .endm
    .macro function name
    .globl \name
    .type \name, @function
\name:
    .endm
    .macro ends name
    .size \name, . - \name
    .endm

# No frame, and the frame pointer is a number.
function spins_leaf
    mov %rbp, %r11
    mov $12345, %rbp
    spins
    mov %r11, %rbp
    vzeroupper
    ret
ends spins_leaf

# As kernels of OpenBLAS: kept registers stored by hand, the stack pointer kept in %rbx, a large aligned buffer of which
# little is written.
function spins_aligned
    sub $96, %rsp
    mov %rbx, (%rsp)
    mov %rbp, 8(%rsp)
    mov %r12, 16(%rsp)
    mov %r15, 40(%rsp)
    mov %rsp, %rbx
    sub $33000, %rsp
    and $-4096, %rsp
    mov $1, %rbp
    mov $2, %r12
    mov $3, %r15
    test %rdi, %rdi
    je 2f
    spins
2:  mov %rbx, %rsp
    mov (%rsp), %rbx
    mov 8(%rsp), %rbp
    mov 16(%rsp), %r12
    mov 40(%rsp), %r15
    vzeroupper
    add $96, %rsp
    ret
ends spins_aligned

# Pushes, and a way on that is no straight one; then a call that does not come back, with other code behind it.
function spins_pushed
    push %rbp
    push %rbx
    push %r14
    sub $40, %rsp
    xor %ebx, %ebx
    jmp 3f
4:  spins
    cmp %rbx, %rdi
    je 5f
    call abort@PLT
    .byte 0x48, 0x83, 0xc4, 0x08, 0xc3
3:  cmpq $0, %rdi
    jne 4b
5:  add $40, %rsp
    pop %r14
    pop %rbx
    pop %rbp
    vzeroupper
    ret
ends spins_pushed

# Calls the function in %rsi, then ends by jumping to another one.
function spins_called
    push %r12
    mov %rsi, %r12
    call *%r12
    pop %r12
    mov $100, %rdi
    jmp spins_leaf
ends spins_called

# Leaves by a way that only its registers know: who called it is not to be found out.
function spins_hidden
    pop %rdx
    lea 0x7777(%rdx), %rdx
    push %rbp
    mov %rsp, %rbp
    spins
    pop %rbp
    sub $0x7777, %rdx
    vzeroupper
    jmp *%rdx
ends spins_hidden
    .section .note.GNU-stack, "", @progbits
