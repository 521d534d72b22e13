# The first sector of the emulated machine's disk: loads a Linux kernel as its boot protocol for 32 bits asks.
#
# The disk is read word by word through the ports of the first ATA controller. What to read is written into
# the end of the sector by whoever makes the disk: two regions of (first sector, sectors, address), one after
# the other, and the address of the kernel's boot parameters.

    .code16
    .globl _start
_start:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    lgdtl descriptors
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmpl $0x10, $protected

    .code32
protected:
    movw $0x18, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movb $2, %al                # no interrupts from the disk
    movw $0x3f6, %dx
    outb %al, %dx
    movl $regions, %esi
region:
    movl (%esi), %ebx
    movl 4(%esi), %ebp
    movl 8(%esi), %edi
sector:
    movl $1, %eax
    movw $0x1f2, %dx
    outb %al, %dx
    movl %ebx, %eax
    incw %dx
    outb %al, %dx
    shrl $8, %eax
    incw %dx
    outb %al, %dx
    shrl $8, %eax
    incw %dx
    outb %al, %dx
    shrl $8, %eax
    orb $0xe0, %al
    incw %dx
    outb %al, %dx
    incw %dx
    movb $0x20, %al             # read sectors
    outb %al, %dx
busy:
    inb %dx, %al
    andb $0x88, %al             # busy, or data is there
    cmpb $8, %al
    jne busy
    movw $0x1f0, %dx
    movl $256, %ecx
    rep insw
    incl %ebx
    decl %ebp
    jnz sector
    addl $12, %esi
    cmpl $parameters, %esi
    jne region
    movl (%esi), %esi
    xorl %ebx, %ebx
    xorl %ebp, %ebp
    xorl %edi, %edi
    movl $0x100000, %eax
    jmp *%eax

    .balign 8
table:
    .quad 0, 0
    .quad 0x00cf9a000000ffff    # 0x10: code, 0x18: data, all of the memory
    .quad 0x00cf92000000ffff
descriptors:
    .word . - table - 1
    .long table

    .org 480
regions:
    .fill 6, 4, 0
parameters:
    .long 0
    .org 510
    .word 0xaa55
