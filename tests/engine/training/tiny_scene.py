"""A scene of a few dozen splats seen by ten small cameras, made in code."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cuda_rasterizer import resolve_backend
from engine.cameras import Camera
from engine.dataset.scene import Photo, Scene, SceneFrame
from engine.settings import Settings
from engine.training.gaussians import Gaussians, from_points
from engine.training.photos import WHITE, Color
from engine.training.render import RenderMode, render
from engine.training.trainer import Trainer
from tests.looking import look_at

WIDTH, HEIGHT = 24, 20
BACKEND = resolve_backend("auto")
CALM: Mapping[str, Any] = {"densify_stop": 0, "opacity_reset_interval": 0}


def camera_at(angle: float, *, away: bool = False) -> Camera:
    eye = np.array([4.0 * np.cos(angle), 0.5, 4.0 * np.sin(angle)])
    target = 2.0 * eye if away else np.zeros(3)
    pose = look_at(eye, target, np.array([0.0, -1.0, 0.0]))
    return Camera(pose, 30.0, 30.0, WIDTH / 2, HEIGHT / 2, WIDTH, HEIGHT)


def photo_of(name: str, camera: Camera, *, held_out: bool = False) -> Photo:
    return Photo(name, Path("/nowhere") / name, camera, None, False, held_out)


class MemoryPhotos:
    """Photos in memory, as the store of a real scene would serve them."""

    def __init__(self, pictures: list[np.ndarray], alphas: list[np.ndarray | None]) -> None:
        self.pictures = pictures
        self.alphas = alphas

    def rgb(self, index: int) -> np.ndarray:
        return self.pictures[index]

    def alpha(self, index: int) -> np.ndarray | None:
        return self.alphas[index]


def truth() -> Gaussians:
    """The splats that the photos show: 40 of them, strongly coloured."""
    random = np.random.default_rng(7)
    points = random.uniform(-1.0, 1.0, (40, 3))
    model = from_points(points, random.integers(0, 256, (40, 3)).astype(np.uint8))
    values = {name: tensor.detach().clone() for name, tensor in model.items()}
    values["opacity_logits"] = torch.full((40,), 2.0)
    return Gaussians(values)


@cache
def pictures(background: Color = (0.0, 0.0, 0.0)) -> tuple[np.ndarray, ...]:
    shown = []
    for place in range(10):
        camera = camera_at(place * 0.6)
        with torch.no_grad():
            color = render(truth(), camera, torch.tensor(background), 0, RenderMode(BACKEND)).color
        shown.append((color.clamp(0, 1) * 255).round().to(torch.uint8).numpy())
    return tuple(shown)


def tiny_scene(photos: tuple[Photo, ...] | None = None, points: int = 30) -> Scene:
    random = np.random.default_rng(3)
    if photos is None:
        photos = tuple(
            photo_of(f"{place:02d}.png", camera_at(place * 0.6), held_out=place in {0, 5})
            for place in range(10)
        )
    return Scene(
        name="tiny",
        path=Path("/nowhere"),
        photos=photos,
        points=random.uniform(-1.0, 1.0, (points, 3)),
        point_colors=random.integers(0, 256, (points, 3)).astype(np.uint8),
        frame=SceneFrame(),
        findings=(),
        has_alpha=False,
        random_half_size=None,
    )


def quick(**values: object) -> Settings:
    """The classic recipe with everything twenty times sooner, then `values`."""
    base = Settings().updated(
        {
            "densify_start": 10,
            "densify_stop": 700,
            "densify_interval": 5,
            "opacity_reset_interval": 50,
            "sh_interval": 8,
            "position_lr_steps": 1500,
            "max_splats": 1000,
        }
    )
    return base.updated(values)


def make_trainer(scene: Scene | None = None, **values: object) -> Trainer:
    settings = quick(**values)
    background = WHITE if settings.loss.background == "white" else (0.0, 0.0, 0.0)
    shown = list(pictures(background))
    scene = scene or tiny_scene()
    count = len(scene.photos)
    return Trainer(scene, MemoryPhotos(shown[:count], [None] * count), settings, backend=BACKEND)


def step_until(trainer: Trainer, step: int) -> None:
    while trainer.step < step:
        trainer.step_once()


def with_photos(trainer: Trainer) -> MemoryPhotos:
    """Fresh photos equal to those of a trainer made here."""
    count = len(trainer.scene.photos)
    return MemoryPhotos(list(pictures())[:count], [None] * count)


def bits(trainer: Trainer) -> dict[str, bytes]:
    """Everything a run consists of, as bytes, but for the time it took."""
    tensors, header = trainer.export_state()
    header.pop("seconds")
    state = {name: tensor.cpu().numpy().tobytes() for name, tensor in tensors.items()}
    state["header"] = repr(header).encode()
    return state


def changed_photo(scene: Scene, index: int, photo: Photo) -> Scene:
    photos = list(scene.photos)
    photos[index] = photo
    return dataclasses.replace(scene, photos=tuple(photos))


def step(trainer: Trainer) -> None:
    """One step, of which nobody waits to hear."""
    for _ in trainer.phases():
        pass
