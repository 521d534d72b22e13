"""Launches kernels by name: compiles, caches and loads them as they are first wanted."""

import ctypes
import functools
import logging
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.cubin_cache import CubinCache, cache_folder, cache_key
from cuda_rasterizer.cuda.driver import FREE_SHARED_BYTES, Driver, FunctionAttributes, load_driver
from cuda_rasterizer.cuda.nvrtc import OPTIONS, Compiler, load_compiler
from cuda_rasterizer.cuda.sources import KernelSource
from cuda_rasterizer.debug import debug_is_on
from cuda_rasterizer.errors import RasterizerError

_log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""Told what was compiled, such as "blend for sm_89", how many are done, and of how many."""


class Launcher(Protocol):
    """What runs kernels; tests have one that runs them on the CPU."""

    @property
    def device_type(self) -> str:
        """Where the tensors must be that the parameters point to: "cuda" or "cpu"."""
        ...

    def launch(
        self,
        kernel: str,
        params: ctypes.Structure,
        *,
        grid: int,
        block: int,
        shared_bytes: int = 0,
    ) -> None:
        """Runs a kernel over `grid` blocks of `block` threads, in order with what came before."""
        ...


@dataclass
class _Loaded:
    source: KernelSource
    function: Any
    attributes: FunctionAttributes
    shared_bytes: int = field(default=FREE_SHARED_BYTES)


class CudaLauncher:
    """Launches on one GPU, on the stream that is torch's current one there."""

    def __init__(
        self, driver: Driver, compiler: Compiler, stream: Callable[[], int], cache: Any = None
    ) -> None:
        """Compiles nothing yet. `cache` is a folder; the user's when None."""
        self._driver = driver
        self._compiler = compiler
        self._stream = stream
        self._kernels: dict[str, _Loaded] = {}
        self.target = compiler.target_for(driver.capability)
        self._options = (*OPTIONS, "-lineinfo") if debug_is_on() else OPTIONS
        key = cache_key(
            *(sources.modules(), sources.headers(), self.target, compiler.version), self._options
        )
        self._cache = CubinCache(cache or cache_folder(), key)

    @property
    def device_type(self) -> str:
        """CUDA, always."""
        return "cuda"

    def prepare(self, progress: Progress | None = None) -> None:
        """Compiles what is not in the cache, on all cores, telling `progress`; then loads all."""
        built = self._build_missing(progress or _tell_nobody)
        for module in sources.modules():
            self._load_module(module, built.get(module))

    def _build_missing(self, progress: Progress) -> dict[str, bytes]:
        missing = [module for module in sources.modules() if not self._cache.holds(module)]
        if not missing:
            return {}
        count = len(missing)
        progress(f"compiling the kernels for {self.target}", 0, count)
        built: dict[str, bytes] = {}
        for module, image in made_at_once(self._image, missing, os.cpu_count() or 1):
            built[module] = image
            progress(f"compiled {module} for {self.target}", len(built), count)
        return built

    def cached_modules(self) -> int:
        """How many of `sources.modules()` lie compiled in the cache."""
        return sum(self._cache.holds(module) for module in sources.modules())

    def launch(
        self,
        kernel: str,
        params: ctypes.Structure,
        *,
        grid: int,
        block: int,
        shared_bytes: int = 0,
    ) -> None:
        """Queues the kernel; with the debug switch also waits for it and names it if it fails."""
        loaded = self._loaded(kernel)
        check_launch(loaded.source, params, grid, block)
        if shared_bytes + loaded.attributes.static_shared_bytes > loaded.shared_bytes:
            self._driver.allow_shared_bytes(loaded.function, shared_bytes)
            loaded.shared_bytes = shared_bytes + loaded.attributes.static_shared_bytes
        stream = self._stream()
        try:
            self._driver.launch(
                loaded.function,
                params,
                grid=grid,
                block=block,
                shared_bytes=shared_bytes,
                stream=stream,
            )
            if debug_is_on():
                self._driver.wait(stream)
        except RasterizerError as error:
            hint = "" if debug_is_on() else "; SPLATSCOPE_CUDA_DEBUG=1 finds the kernel at fault"
            raise RasterizerError(
                f"kernel {kernel} (grid {grid}, block {block}): {error}{hint}"
            ) from error

    def attributes(self, kernel: str) -> FunctionAttributes:
        """Registers, spills and limits of a kernel."""
        return self._loaded(kernel).attributes

    def resident_blocks(self, kernel: str, block: int, shared_bytes: int = 0) -> int:
        """Blocks of such a launch that the whole GPU holds at once."""
        each = self._driver.resident_blocks(self._loaded(kernel).function, block, shared_bytes)
        return each * self._driver.multiprocessors

    def _loaded(self, kernel: str) -> _Loaded:
        if kernel not in self._kernels:
            source = sources.kernels().get(kernel)
            if source is None:
                raise RasterizerError(f"there is no kernel {kernel!r} among the CUDA sources")
            self._load_module(source.module)
        return self._kernels[kernel]

    def _image(self, module: str) -> bytes:
        def build() -> bytes:
            _log.info("compiling %s for %s", module, self.target)
            text = sources.modules()[module]
            return self._compiler.compile(module, text, self.target, self._options).image

        return self._cache.load_or_build(module, build)

    def _load_module(self, module: str, image: bytes | None = None) -> None:
        wanted = [source for source in sources.kernels().values() if source.module == module]
        if all(source.name in self._kernels for source in wanted):
            return
        handle = self._driver.load_module(self._image(module) if image is None else image)
        for source in wanted:
            function = self._driver.function(handle, source.name)
            attributes = self._driver.attributes(function)
            self._kernels[source.name] = _Loaded(source, function, attributes)


def _tell_nobody(_what: str, _done: int, _count: int) -> None:
    pass


def made_at_once(
    make: Callable[[str], bytes], modules: Sequence[str], threads: int
) -> Generator[tuple[str, bytes], None, None]:
    """What `make` gives for each, as they are ready, by so many threads at most.

    The threads are daemons: whoever gives up (or ends the program) waits for none of them, and
    what is being compiled then still goes to the cache while the program lasts.
    """
    waiting = deque(modules)
    ready: queue.SimpleQueue[tuple[str, bytes | BaseException]] = queue.SimpleQueue()

    def work() -> None:
        while True:
            try:
                module = waiting.popleft()
            except IndexError:
                return
            try:
                ready.put((module, make(module)))
            except BaseException as error:  # noqa: BLE001  raised again where it is waited for
                ready.put((module, error))

    for _ in range(min(len(modules), threads)):
        threading.Thread(target=work, name="compile kernels", daemon=True).start()
    try:
        for _ in modules:
            module, made = ready.get()
            if isinstance(made, BaseException):
                raise made
            yield module, made
    finally:
        waiting.clear()


def check_launch(source: KernelSource, params: ctypes.Structure, grid: int, block: int) -> None:
    """Refuses a launch that its kernel was not declared for."""
    expected = f"{source.parameters}, 1 to {source.max_threads} threads in multiples of 32"
    found = type(params).__name__
    if found != source.parameters or not 0 < block <= source.max_threads or block % 32:
        raise RasterizerError(
            f"kernel {source.name} is launched with {found}, {block} threads; expected {expected}"
        )
    if not 0 < grid < 2**31:
        raise RasterizerError(f"kernel {source.name} is launched over {grid} blocks")


@functools.cache
def launcher_of_gpu(ordinal: int) -> CudaLauncher:
    """The launcher of one GPU, the same for every caller."""
    driver = load_driver(ordinal)

    def stream() -> int:
        handle: int = torch.cuda.current_stream(ordinal).cuda_stream
        return handle

    return CudaLauncher(driver, load_compiler(), stream)
