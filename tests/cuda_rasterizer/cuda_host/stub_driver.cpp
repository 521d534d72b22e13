// Stands for NVIDIA's driver library, so that the real cuda-bindings can be tested without a GPU.
//
// Answers what `Driver` asks as a GPU of capability 9.0 would, and writes each launch, with the bytes of its
// one parameter, to the file that STUB_DRIVER_LOG names.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace {

using Handle = void*;
Handle current = nullptr;
int primary_context = 0;

int init(unsigned) {
    return 0;
}
int driver_version(int* version) {
    *version = 13020;
    return 0;
}
int device_get(int* device, int ordinal) {
    *device = ordinal;
    return 0;
}
int retain(Handle* context, int) {
    *context = &primary_context;
    return 0;
}
int get_current(Handle* context) {
    *context = current;
    return 0;
}
int push(Handle context) {
    current = context;
    return 0;
}
int pop(Handle* context) {
    *context = current;
    current = nullptr;
    return 0;
}
int device_attribute(int* value, int kind, int) {
    *value = kind == 75 ? 9 : kind == 76 ? 0 : 100000;
    return 0;
}
// An image that is not an ELF file is refused as the driver does it.
int load(Handle* module, const void* image) {
    static char loaded;
    *module = &loaded;
    return std::memcmp(image,
                       "\x7f"
                       "ELF",
                       4) == 0
               ? 0
               : 200;
}
int get_function(Handle* function, Handle, const char* name) {
    *function = strdup(name);
    return 0;
}
int function_attribute(int* value, int kind, Handle) {
    *value = kind;
    return 0;
}
int launch(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
           unsigned shared, Handle stream, void** parameters, void** extra) {
    if (!std::getenv("STUB_DRIVER_LOG")) return 0;
    std::FILE* log = std::fopen(std::getenv("STUB_DRIVER_LOG"), "a");
    std::fprintf(log, "%s %u %u %u %u %u %u %u %zu %d %d ", static_cast<const char*>(function), gx, gy, gz,
                 bx, by, bz, shared, reinterpret_cast<std::size_t>(stream), extra != nullptr,
                 current == &primary_context);
    const auto* bytes = static_cast<const unsigned char*>(parameters[0]);
    const int size = std::atoi(std::getenv("STUB_DRIVER_BYTES"));
    for (int i = 0; i < size; ++i) std::fprintf(log, "%02x", bytes[i]);
    std::fprintf(log, "\n");
    std::fclose(log);
    return 0;
}
int error_name(int, const char** text) {
    *text = "CUDA_ERROR_INVALID_IMAGE";
    return 0;
}
int error_string(int, const char** text) {
    *text = "device kernel image is invalid";
    return 0;
}

struct Entry {
    const char* name;
    void* function;
};
template <typename Function>
void* erased(Function* function) {
    return reinterpret_cast<void*>(function);
}
const Entry entries[] = {
    {"cuInit", erased(init)},
    {"cuDriverGetVersion", erased(driver_version)},
    {"cuDeviceGet", erased(device_get)},
    {"cuDevicePrimaryCtxRetain", erased(retain)},
    {"cuCtxGetCurrent", erased(get_current)},
    {"cuCtxPushCurrent", erased(push)},
    {"cuCtxPopCurrent", erased(pop)},
    {"cuDeviceGetAttribute", erased(device_attribute)},
    {"cuModuleLoadData", erased(load)},
    {"cuModuleGetFunction", erased(get_function)},
    {"cuFuncGetAttribute", erased(function_attribute)},
    {"cuLaunchKernel", erased(launch)},
    {"cuGetErrorName", erased(error_name)},
    {"cuGetErrorString", erased(error_string)},
};

}  // namespace

extern "C" int cuGetProcAddress_v2(const char* symbol, void** function, int, std::uint64_t, int* found) {
    *function = nullptr;
    for (const Entry& entry : entries)
        if (std::strcmp(entry.name, symbol) == 0) *function = entry.function;
    if (found) *found = *function ? 0 : 1;
    return *function ? 0 : 500;
}
