"""Builds the ray tracer of `tracer/` and takes the photos with it."""

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from scripts.make_demo_scene.viewpoints import FOCAL, HEIGHT, WIDTH

SOURCES = Path(__file__).resolve().parent / "tracer"
# No contraction: the same arithmetic, so the same pictures, on every machine and compiler.
FLAGS = ("-O2", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")


def photo_name(number: int) -> str:
    """The file name of a photo."""
    return f"still_life_{number:02d}.jpg"


def build_tracer(folder: Path) -> Path:
    """Compile the tracer into `folder`; the program."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or "g++"
    program = folder / "trace"
    files = [str(SOURCES / name) for name in ("trace.cpp", "still_life.cpp")]
    subprocess.run([compiler, *FLAGS, *files, "-o", str(program)], check=True)
    return program


def take_photo(
    program: Path, number: int, pose: np.ndarray, samples_per_side: int
) -> tuple[np.ndarray, np.ndarray]:
    """8-bit RGB (height, width, 3) and distances (height, width) from a camera-to-world pose."""
    size = [str(WIDTH), str(HEIGHT), repr(FOCAL), str(samples_per_side), str(number)]
    numbers = [repr(value) for value in pose[:3].reshape(-1).tolist()]
    traced = subprocess.run([str(program), *size, *numbers], capture_output=True, check=True)
    pixels = WIDTH * HEIGHT
    picture = np.frombuffer(traced.stdout, np.uint8, 3 * pixels).reshape(HEIGHT, WIDTH, 3)
    depth = np.frombuffer(traced.stdout, np.float32, pixels, offset=3 * pixels)
    return picture, depth.reshape(HEIGHT, WIDTH)


def take_photos(
    poses: list[np.ndarray], samples_per_side: int, processes: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """All photos and their distances, in the order of the poses."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(processes) as pool:
        program = build_tracer(Path(folder))
        jobs = [
            pool.submit(take_photo, program, number, pose, samples_per_side)
            for number, pose in enumerate(poses)
        ]
        results = [job.result() for job in jobs]
    return [picture for picture, _ in results], [depth for _, depth in results]
