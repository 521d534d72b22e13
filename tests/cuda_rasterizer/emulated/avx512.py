"""x86-64 with AVX-512: the library of this machine, run on a Linux kernel in Bochs.

The emulated machine has one disk, which is one file: our first sector, the kernel, its first files
and, beyond them, one stream of bytes in and one out (see `guest.cpp`).
"""

import os
import re
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuda_rasterizer import native
from tests.child_process import BUSY_SECONDS
from tests.cuda_rasterizer.emulated.machine import FOLDER, ROOT, Machine, require, run

BUILD = ROOT / "build" / "avx512"
SECTOR, PAGE, MIB = 512, 4096, 1 << 20
INPUT, OUTPUT = 1 << 18, 5 << 18  # sectors that guest.cpp knows, too
CYLINDERS = 3000
MEMORY = 512 * MIB
KERNEL_AT, FILES_AT = MIB, 192 * MIB  # what lies above the kernel until it is unpacked
# Bochs lays the registers' save area out as before it could be compacted, whatever it says.
PLAIN_SAVE_AREA = "noxsaves clearcpuid=xsavec"
# What takes most of a boot: lines on the serial port, and guarding the kernel's memory.
QUICK = "quiet loglevel=3 rodata=off nopti mitigations=off lsm= audit=0 nokaslr"
SETTINGS = f"""
display_library: term
megs: {MEMORY // MIB}
romimage: file=/usr/share/bochs/BIOS-bochs-latest, options=fastboot
vgaromimage: file=/usr/share/vgabios/vgabios.bin
cpu: model=corei7_skylake_x, count=1, ips=50000000, reset_on_triple_fault=0
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=disk, path=disk, mode=flat, cylinders={CYLINDERS}, heads=16, spt=63
boot: disk
com1: enabled=1, mode=file, dev=serial.log
log: bochs.log
panic: action=fatal
clock: sync=none
speaker: enabled=0
"""


class Disk:
    """The file that is the emulated machine's disk, and the process that emulates it."""

    def __init__(self) -> None:
        for name in ("disk.lock", "serial.log"):
            (BUILD / name).unlink(missing_ok=True)
        (BUILD / "settings").write_text(SETTINGS)
        (BUILD / "continue").write_text("c\n")  # Debian's Bochs has its debugger built in
        self._sent = self._received = 0
        self._file = (BUILD / "disk").open("r+b", buffering=0)
        self._process = subprocess.Popen(
            ("bochs-bin", "-q", "-f", "settings", "-rc", "continue"),
            cwd=BUILD,
            env={**os.environ, "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def send(self, content: bytes) -> None:
        """As `Wire.send`."""
        os.pwrite(self._file.fileno(), content, (INPUT + 1) * SECTOR + self._sent)
        self._sent += len(content)
        assert (INPUT + 1) * SECTOR + self._sent <= OUTPUT * SECTOR, "the disk is full"
        os.pwrite(self._file.fileno(), struct.pack("<Q", self._sent), INPUT * SECTOR)

    def receive(self, size: int) -> bytes:
        """As `Wire.receive`."""
        file, end = self._file.fileno(), time.monotonic() + BUSY_SECONDS
        while struct.unpack("<Q", os.pread(file, 8, OUTPUT * SECTOR))[0] < self._received + size:
            ended = self._process.poll() is not None or "replay" in self.said()
            assert not ended, f"the emulated machine has ended: {self.said()}"
            assert time.monotonic() < end, f"the emulated machine is silent: {self.said()}"
            time.sleep(0.003)
        content = os.pread(file, size, (OUTPUT + 1) * SECTOR + self._received)
        self._received += size
        return content

    def said(self) -> str:
        """What kernel and programs said on the serial port."""
        log = BUILD / "serial.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def close(self) -> None:
        """Ends the machine."""
        self._process.kill()  # it takes no other signal
        self._process.wait()
        self._file.close()
        (BUILD / "disk").unlink()


@contextmanager
def start() -> Iterator[Machine]:
    """Compiles what is needed, starts the machine; skips where Bochs or a kernel is missing."""
    require("bochs-bin", "c++", "ldd", command="make test-avx512")
    kernels = sorted((BUILD / "kernel" / "boot").glob("vmlinuz-*"))
    if not kernels:
        pytest.skip(f"no Linux kernel in {BUILD / 'kernel'}: see make test-avx512")
    options = ("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread")
    for program in ("guest", "replay"):
        run("c++", *options, FOLDER / f"{program}.cpp", "-o", BUILD / program)
    run("as", "--32", FOLDER / "boot.s", "-o", BUILD / "boot.o")
    flat = ("-m", "elf_i386", "-Ttext", "0x7c00", "--oformat", "binary")
    run("ld", *flat, BUILD / "boot.o", "-o", BUILD / "boot")
    _write_disk(kernels[-1].read_bytes())
    disk = Disk()
    try:
        yield Machine(disk)
    finally:
        disk.close()


def _write_disk(kernel: bytes) -> None:
    """First sector, kernel and files, by the kernel's boot protocol (Documentation/arch/x86)."""
    setup = (kernel[0x1F1] + 1) * SECTOR
    body = _padded(kernel[setup:], SECTOR)
    files = _padded(_archive(_guest_files()), PAGE)
    parameters_at = FILES_AT + len(files)
    parameters = bytearray(PAGE)
    header = slice(0x1F1, 0x202 + kernel[0x201])
    parameters[header] = kernel[header]
    parameters[0x210] = 0xFF  # a loader without a number of its own
    struct.pack_into("<II", parameters, 0x218, FILES_AT, len(files))
    struct.pack_into("<I", parameters, 0x228, parameters_at + PAGE)
    usable = ((0, 0x9FC00), (MIB, MEMORY - 2 * MIB))
    parameters[0x1E8] = len(usable)
    for index, (start, size) in enumerate(usable):
        struct.pack_into("<QQI", parameters, 0x2D0 + 20 * index, start, size, 1)
    words = f"console=ttyS0 {QUICK} {PLAIN_SAVE_AREA}\0".encode()
    rest = _padded(files + parameters + words, SECTOR)
    first = bytearray((BUILD / "boot").read_bytes())
    sectors, rest_sectors = len(body) // SECTOR, len(rest) // SECTOR
    regions = (1, sectors, KERNEL_AT, 1 + sectors, rest_sectors, FILES_AT)
    struct.pack_into("<7I", first, 480, *regions, parameters_at)
    assert (1 + sectors + rest_sectors) <= INPUT
    with (BUILD / "disk").open("wb") as disk:
        disk.write(first + body + rest)
        disk.truncate(CYLINDERS * 16 * 63 * SECTOR)  # a file with holes


def _guest_files() -> dict[str, bytes]:
    """The programs, the library of this build, and what they are linked to, by path over there."""
    library = native.library_path()
    linked = {"/init": BUILD / "guest", "/replay": BUILD / "replay", "/library.so": library}
    for program in tuple(linked.values()):
        told = subprocess.run(("ldd", program), capture_output=True, text=True, check=True).stdout
        linked.update((path, Path(path)) for path in re.findall(r"(/\S+) \(0x", told))
    return {path: file.read_bytes() for path, file in linked.items()}


def _archive(files: dict[str, bytes]) -> bytes:
    """A cpio archive ("newc"), as the kernel unpacks its first files."""
    folders = {str(parent) for path in files for parent in Path(path).parents} - {"/"}
    entries = [(folder, 0o040755, b"", 0) for folder in (*sorted(folders), "/dev")]
    entries.append(("/dev/console", 0o020600, b"", 5))
    entries += [(path, 0o100755, content, 0) for path, content in files.items()]
    entries.append(("/TRAILER!!!", 0, b"", 0))
    archive = bytearray()
    for number, (path, mode, content, major) in enumerate(entries):
        name = path[1:].encode() + b"\0"
        minor = 1 if major else 0
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, major, minor, len(name), 0)
        archive += b"070701" + b"".join(b"%08X" % field for field in fields)
        archive = bytearray(_padded(archive + name, 4)) + _padded(content, 4)
    return bytes(archive)


def _padded(content: bytes, size: int) -> bytes:
    return bytes(content) + bytes(-len(content) % size)
