"""`splatscope eval` and `splatscope render`: a finished model against a scene."""

import argparse
import dataclasses
import sys
from pathlib import Path

import torch

from cuda_rasterizer import to_rgba8
from engine.cli import print_json
from engine.cli_flags import given_values
from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Photo, Scene
from engine.device import choose_backend, put_into_force
from engine.errors import SceneError
from engine.export.pictures import write_png
from engine.export.saved_model import SavedModel, load_model
from engine.scene_names import scene_path
from engine.settings import Settings
from engine.training import evaluation
from engine.training.render import RenderMode
from engine.training.render import render as render_splats


def evaluate(arguments: argparse.Namespace) -> int:
    """Print PSNR and SSIM over the held-out photos."""
    saved, scene, settings = _opened(arguments)
    if not scene.held_out:
        raise SceneError(
            f"No photo of {scene.name} is held out, so there is nothing to measure on; give "
            "--test-every 8, say.",
            path=scene.path,
        )
    mode = _mode(settings)
    store = PhotoStore(dataclasses.replace(scene, photos=scene.held_out), settings)
    usable = store.load_all()
    scores = list(
        evaluation.evaluate(
            saved.splats,
            usable,
            store,
            background=evaluation.evaluation_background(settings),
            sh_degree=saved.sh_degree,
            mode=mode,
        )
    )
    store.close()
    psnr, ssim = evaluation.mean_score(scores)
    if arguments.json:
        images = [dataclasses.asdict(score) for score in scores]
        print_json({"psnr": psnr, "ssim": ssim, "splats": len(saved.splats), "images": images})
        return 0
    for score in scores:
        print(f"{score.name}: PSNR {score.psnr:.2f} dB, SSIM {score.ssim:.4f}")  # noqa: T201
    print(  # noqa: T201
        f"{len(saved.splats):,} splats, {len(scores)} held-out photos: PSNR {psnr:.2f} dB, "
        f"SSIM {ssim:.4f}"
    )
    return 0


def render(arguments: argparse.Namespace) -> int:
    """Draw a PNG for each held-out photo, or for all; the files must exist in the end."""
    saved, scene, settings = _opened(arguments)
    photos = scene.photos if arguments.all else scene.held_out
    if not photos:
        raise SceneError(
            f"No photo of {scene.name} is held out; give --all to draw every photo's view.",
            path=scene.path,
        )
    mode = _mode(settings)
    background = torch.tensor(evaluation.evaluation_background(settings))
    for photo, path in zip(photos, _targets(arguments.output, photos), strict=True):
        with torch.no_grad():
            picture = render_splats(saved.splats, photo.camera, background, saved.sh_degree, mode)
        write_png(path, to_rgba8(picture.color, backend=mode.backend).cpu().numpy())
    print(f"{len(photos)} pictures are in {arguments.output}.", file=sys.stderr)  # noqa: T201
    return 0


def _opened(arguments: argparse.Namespace) -> tuple[SavedModel, Scene, Settings]:
    """The model in the scene's frame, the scene, and the settings: the run's own, then flags."""
    saved = load_model(arguments.model)
    settings = saved.settings.updated(given_values(arguments))
    scene = load_scene(scene_path(arguments.scene), settings)
    if saved.dropped:
        print(  # noqa: T201
            f"{saved.dropped} broken splats of {arguments.model} were left out.", file=sys.stderr
        )
    return saved.moved_to(scene.frame), scene, settings


def _targets(folder: Path, photos: tuple[Photo, ...]) -> list[Path]:
    """A PNG path for each photo by its name, with its extension where two would collide."""
    stems = [Path(photo.name).with_suffix("").as_posix() for photo in photos]
    unique = len(set(stems)) == len(stems)
    names = stems if unique else [photo.name for photo in photos]
    return [folder / f"{name}.png" for name in names]


def _mode(settings: Settings) -> RenderMode:
    put_into_force(settings)
    return RenderMode.of(settings, choose_backend(settings))
