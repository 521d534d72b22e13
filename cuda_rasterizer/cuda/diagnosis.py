"""A look at everything that the CUDA backend needs, one thing at a time, and a small trial of it.

For `doctor` and for bug reports: each part is looked for even where another one is missing.
"""

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from cuda_rasterizer.backends import backend_status
from cuda_rasterizer.cuda import launches, nvrtc, sources
from cuda_rasterizer.cuda.driver import load_driver
from cuda_rasterizer.cuda.launcher import Progress, launcher_of_gpu
from cuda_rasterizer.errors import RasterizerError
from cuda_rasterizer.rasterize import Rendering, rasterize

# Of the mean difference to the largest value of a tensor. Rounding stays below 1e-6 and one pixel
# that falls to the other side of a decision below 1e-5; a single tile gone wrong is above 1e-3.
_TOLERANCE = 1e-4
_TRIAL_SPLATS = 40
_TRIAL_SIZE = (50, 37)


@dataclass(frozen=True)
class Gpu:
    """One GPU that torch sees."""

    name: str
    architecture: str
    memory_gib: float


@dataclass(frozen=True)
class CudaDiagnosis:
    """What was found; None where it is absent or could not be tried.

    Attributes:
        torch_cuda: the CUDA that torch is built with.
        driver: the newest CUDA that the driver knows.
        gpus: what torch sees.
        nvrtc: version of the compiler.
        architecture: what kernels are compiled for on the first of the GPUs.
        kernels: where the kernels came from, in words.
        trial: how a small picture and its gradients compared with another backend, in words.
        problem: what keeps the backend from being used, with its fix; None where it works.
    """

    torch_cuda: str | None
    driver: str | None
    gpus: tuple[Gpu, ...]
    nvrtc: str | None
    architecture: str | None
    kernels: str | None
    trial: str | None
    problem: str | None


def diagnose(progress: Progress | None = None) -> CudaDiagnosis:
    """Looks at everything; compiles the kernels where the backend can be used and draws with it."""
    problem = backend_status()["cuda"]
    gpus = _gpus()
    kernels = trial = architecture = None
    if problem is None:
        try:
            architecture, kernels = _prepared(progress)
            trial = _tried()
        except (RasterizerError, torch.OutOfMemoryError) as error:
            problem = str(error)
    return CudaDiagnosis(
        torch_cuda=torch.version.cuda,
        driver=_driver_version() if gpus else None,
        gpus=gpus,
        nvrtc=_nvrtc_version(),
        architecture=architecture,
        kernels=kernels,
        trial=trial,
        problem=problem,
    )


def _gpus() -> tuple[Gpu, ...]:
    if torch.version.cuda is None or not torch.cuda.is_available():
        return ()
    found = (torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count()))
    return tuple(
        Gpu(gpu.name, f"sm_{gpu.major}{gpu.minor}", round(gpu.total_memory / 2**30, 1))
        for gpu in found
    )


def _driver_version() -> str | None:
    try:
        return load_driver(torch.cuda.current_device()).version
    except (RasterizerError, torch.OutOfMemoryError):  # told as the problem
        return None


def _nvrtc_version() -> str | None:
    try:
        return nvrtc.load_compiler().version
    except RasterizerError:  # told as the problem where it matters
        return None


def _prepared(progress: Progress | None) -> tuple[str | None, str]:
    """Architecture, and where the kernels came from; all are loaded then."""
    if launches.installed_launcher() is not None:
        return None, "brought by a launcher of its own"
    launcher = launcher_of_gpu(torch.cuda.current_device())
    count, cached = len(sources.modules()), launcher.cached_modules()
    start = time.perf_counter()
    launcher.prepare(progress)
    seconds = time.perf_counter() - start
    if cached == count:
        return launcher.target, f"all {count} from the cache in {seconds:.1f} s"
    return launcher.target, f"{count - cached} of {count} compiled in {seconds:.1f} s"


def _tried() -> str:
    """Draws a few splats here and by the best other backend.

    Raises:
        RasterizerError: they do not agree.
    """
    other = "cpu" if backend_status()["cpu"] is None else "reference"
    launcher = launches.installed_launcher()
    device = torch.device("cuda" if launcher is None else launcher.device_type)
    found, expected = _trial("cuda", device), _trial(other, torch.device("cpu"))
    differences = [
        (f.cpu() - e).abs().mean() / e.abs().max() for f, e in zip(found, expected, strict=True)
    ]
    worst = float(torch.stack(differences).max())
    if not worst <= _TOLERANCE:
        raise RasterizerError(
            f"a small picture and its gradients differ from backend {other!r} by {worst:.1e} of "
            f"their largest value in the mean; expected at most {_TOLERANCE:.0e}. Please report "
            "this with all that doctor says"
        )
    return f"a small picture and its gradients equal backend {other!r} within {worst:.0e}"


def _trial(backend: str, device: torch.device) -> list[Tensor]:
    """A picture and the gradients of all that it is made of."""
    random = torch.Generator().manual_seed(5)

    def draw(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random)

    splats = (
        (draw(_TRIAL_SPLATS, 3) - 0.5) * 2 + torch.tensor([0.0, 0.0, 3.0]),
        draw(_TRIAL_SPLATS, 4) - 0.5,
        0.05 + 0.2 * draw(_TRIAL_SPLATS, 3),
        0.1 + 0.8 * draw(_TRIAL_SPLATS),
        draw(_TRIAL_SPLATS, 3),
    )
    leaves = [values.to(device).requires_grad_() for values in splats]
    width, height = _TRIAL_SIZE
    intrinsics = torch.tensor([[40.0, 0, width / 2], [0, 40.0, height / 2], [0, 0, 1]])
    picture: Rendering = rasterize(
        *leaves[:4],
        features=leaves[4],
        world_to_camera=torch.eye(4),
        intrinsics=intrinsics,
        width=width,
        height=height,
        depth=False,
        backend=backend,
    )
    (picture.color.square().sum() + picture.alpha.sum()).backward()  # type: ignore[no-untyped-call]
    gradients = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return [picture.color.detach(), *gradients]
