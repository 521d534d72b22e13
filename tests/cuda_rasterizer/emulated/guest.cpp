// The first program of the emulated x86-64 machine: carries bytes between its disk and `replay`.
//
// The machine's kernel has no driver for the disk, so that this program has its ports for itself. Two streams
// lie on the disk, `input` written by the other side and `output` by this one: a sector that tells the
// stream's length (8 bytes), then the stream. Whatever `replay` says on its standard error goes to the serial
// port.

#include <fcntl.h>
#include <signal.h>
#include <sys/io.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr size_t sector_bytes = 512, buffer_bytes = 128 * sector_bytes;
constexpr uint64_t input = 1 << 18, output = 5 << 18;  // sectors; avx512.py knows them, too
constexpr unsigned data_port = 0x1f0, count_port = 0x1f2, command_port = 0x1f7, control_port = 0x3f6;
constexpr int read_command = 0x20, write_command = 0x30, no_interrupts = 2;

std::mutex disk;

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    for (;;) pause();
}

void begin(int command, uint64_t sector, size_t count) {
    outb(count, count_port);
    for (unsigned i = 0; i < 3; ++i) outb(sector >> 8 * i, count_port + 1 + i);
    outb(0xe0 | sector >> 24, count_port + 4);
    outb(command, command_port);
}
void wait_for_data() {
    while ((inb(command_port) & 0x88) != 8) continue;
}
void read_sectors(uint64_t sector, size_t count, char* to) {
    const std::lock_guard<std::mutex> alone(disk);
    begin(read_command, sector, count);
    for (; count; --count, to += sector_bytes) {
        wait_for_data();
        insw(data_port, to, sector_bytes / 2);
    }
}
void write_sectors(uint64_t sector, size_t count, const char* from) {
    const std::lock_guard<std::mutex> alone(disk);
    begin(write_command, sector, count);
    for (; count; --count, from += sector_bytes) {
        wait_for_data();
        outsw(data_port, from, sector_bytes / 2);
    }
    while (inb(command_port) & 0x80) continue;
}

size_t sectors_of(size_t bytes) {
    return (bytes + sector_bytes - 1) / sector_bytes;
}

void pass_input(int to) {
    std::vector<char> buffer(buffer_bytes);
    for (uint64_t done = 0;;) {
        uint64_t length;
        read_sectors(input, 1, buffer.data());
        std::memcpy(&length, buffer.data(), sizeof length);
        if (length == done) usleep(1000);
        while (done < length) {
            const size_t before = done % sector_bytes;
            const size_t bytes = std::min<uint64_t>(length - done, buffer_bytes - before);
            read_sectors(input + 1 + done / sector_bytes, sectors_of(before + bytes), buffer.data());
            for (size_t sent = 0; sent < bytes;) {
                const ssize_t count = write(to, buffer.data() + before + sent, bytes - sent);
                if (count < 0) return;  // `replay` has ended, and has said why
                sent += size_t(count);
            }
            done += bytes;
        }
    }
}

void pass_output(int from) {
    std::vector<char> buffer(buffer_bytes), head(sector_bytes);
    uint64_t done = 0;
    for (;;) {
        const size_t before = done % sector_bytes;
        const ssize_t count = read(from, buffer.data() + before, buffer_bytes - before);
        if (count <= 0) return;
        const size_t filled = before + size_t(count), rest = filled % sector_bytes;
        write_sectors(output + 1 + done / sector_bytes, sectors_of(filled), buffer.data());
        std::memmove(buffer.data(), buffer.data() + (filled - rest), rest);
        done += uint64_t(count);
        std::memcpy(head.data(), &done, sizeof done);
        write_sectors(output, 1, head.data());
    }
}

}  // namespace

int main() {
    int to_replay[2], from_replay[2];
    if (iopl(3)) fail("the ports");
    outb(no_interrupts, control_port);
    if (pipe2(to_replay, O_CLOEXEC) || pipe2(from_replay, O_CLOEXEC)) fail("pipes");
    if (fork() == 0) {
        dup2(to_replay[0], 0);
        dup2(from_replay[1], 1);
        execl("/replay", "/replay", "/library.so", nullptr);
        fail("replay");
    }
    close(to_replay[0]);
    close(from_replay[1]);
    signal(SIGPIPE, SIG_IGN);
    std::thread(pass_input, to_replay[1]).detach();
    pass_output(from_replay[0]);
    int status = 0;
    wait(&status);
    std::fprintf(stderr, "replay ended with %d\n", status);
    for (;;) pause();
}
