"""`splatscope eval` and `splatscope render`: a finished model against a scene."""

import argparse
import dataclasses
from pathlib import Path, PurePosixPath

import torch

from cuda_rasterizer import to_rgba8
from engine.cli import print_json
from engine.cli_flags import given_values
from engine.cli_progress import Progress
from engine.dataset.findings import finding_line, grouped
from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Photo, Scene
from engine.device import choose_backend, prepare_kernels, put_into_force, tensor_device
from engine.errors import ExportError, SceneError
from engine.export.pictures import write_png
from engine.export.saved_model import SavedModel, load_model
from engine.photo_score import PhotoScore
from engine.scene_names import scene_path
from engine.settings import Settings
from engine.training import evaluation
from engine.training.render import RenderMode
from engine.training.render import render as render_splats
from engine.transfers import to_device
from engine.wording import counted


def evaluate(arguments: argparse.Namespace) -> int:
    """Print PSNR and SSIM over the held-out photos."""
    with Progress() as progress:
        saved, scene, settings = _opened(arguments, progress)
        if not scene.held_out:
            raise SceneError(
                f"No photo of {scene.name} is held out, so there is nothing to measure on; give "
                "--test-every 8, say.",
                path=scene.path,
            )
        scores = _scores(saved, scene, settings, progress)
    psnr, ssim = evaluation.mean_score(scores)
    if arguments.json:
        images = [dataclasses.asdict(score) for score in scores]
        print_json({"psnr": psnr, "ssim": ssim, "splats": len(saved.splats), "images": images})
        return 0
    for score in scores:
        print(f"{score.name}: PSNR {score.psnr:.2f} dB, SSIM {score.ssim:.4f}")  # noqa: T201
    print(  # noqa: T201
        f"{counted(len(saved.splats), 'splat')}, {counted(len(scores), 'held-out photo')}: "
        f"PSNR {psnr:.2f} dB, SSIM {ssim:.4f}"
    )
    return 0


def _scores(
    saved: SavedModel, scene: Scene, settings: Settings, progress: Progress
) -> list[PhotoScore]:
    """The score of each held-out photo that can be decoded."""
    mode = _mode(settings, saved, progress)
    store = PhotoStore(dataclasses.replace(scene, photos=scene.held_out), settings)
    usable = store.load_all(progress.reading)
    for finding in grouped(item for item in usable.findings if item.code == "photo_unreadable"):
        progress.say(finding_line(finding))
    scores = []
    for score in evaluation.evaluate(
        saved.splats,
        usable,
        store,
        background=evaluation.evaluation_background(settings),
        sh_degree=saved.sh_degree,
        mode=mode,
    ):
        scores.append(score)
        progress.preparing("Measuring", len(scores), len(usable.photos))
    store.close()
    return scores


def render(arguments: argparse.Namespace) -> int:
    """Draw a PNG for each held-out photo, or for all; the files must exist in the end.

    Pictures of the same names that lie there are replaced, which is told.
    """
    with Progress() as progress:
        saved, scene, settings = _opened(arguments, progress)
        photos = scene.photos if arguments.all else scene.held_out
        if not photos:
            raise SceneError(
                f"No photo of {scene.name} is held out; give --all to draw every photo's view.",
                path=scene.path,
            )
        targets = _targets(arguments.output, photos, scene)
        mode = _mode(settings, saved, progress)
        background = to_device(
            torch.tensor(evaluation.evaluation_background(settings)), saved.splats.means.device
        )
        replaced = sum(path.exists() for path in targets)
        for done, (photo, path) in enumerate(zip(photos, targets, strict=True)):
            progress.preparing("Drawing", done, len(photos))
            with torch.no_grad():
                picture = render_splats(
                    saved.splats, photo.camera, background, saved.sh_degree, mode
                )
            write_png(path, to_rgba8(picture.color, backend=mode.backend).cpu().numpy())
    if arguments.json:
        drawn = zip(photos, targets, strict=True)
        images = [{"name": photo.name, "path": str(path)} for photo, path in drawn]
        print_json({"splats": len(saved.splats), "replaced": replaced, "images": images})
        return 0
    are = "is" if len(photos) == 1 else "are"
    earlier = "an earlier one" if replaced == 1 else "earlier ones"
    instead = f"; {replaced:,} of them in the place of {earlier}" if replaced else ""
    print(  # noqa: T201
        f"{counted(len(photos), 'picture')} {are} in {arguments.output}{instead}."
    )
    return 0


def _opened(
    arguments: argparse.Namespace, progress: Progress
) -> tuple[SavedModel, Scene, Settings]:
    """The model in the scene's frame, the scene, and the settings: the run's own, then flags."""
    saved = load_model(arguments.model)
    settings = saved.settings.updated(given_values(arguments))
    scene = load_scene(scene_path(arguments.scene), settings, progress.reading)
    if saved.dropped:
        progress.say(f"Left out {counted(saved.dropped, 'broken splat')} of {arguments.model}.")
    if not saved.fits(scene):
        origin = f"on {saved.scene}, and" if saved.scene else "on other photos:"
        progress.say(
            f"{arguments.model} was trained {origin} {scene.path} is another scene. What comes out "
            "says little."
        )
    return saved.moved_to(scene.frame), scene, settings


def _targets(folder: Path, photos: tuple[Photo, ...], scene: Scene) -> list[Path]:
    """A PNG path below `folder` for each photo by its name, with its extension where two collide.

    ExportError when a picture would lie among the photos of the scene.
    """
    stems = [_inside(Path(photo.name).with_suffix("").as_posix()) for photo in photos]
    unique = len(set(stems)) == len(stems)
    names = stems if unique else [_inside(photo.name) for photo in photos]
    targets = [folder / f"{name}.png" for name in names]
    taken = {photo.path.parent.resolve() for photo in scene.photos}
    among = [target for target in targets if target.parent.resolve() in taken]
    if among:
        raise ExportError(
            f"{among[0].parent} holds photos of the scene, and pictures there would be taken for "
            "photos or take their place. Choose a folder of its own for the pictures.",
            path=among[0].parent,
        )
    return targets


def _inside(name: str) -> str:
    """A photo's name as one that leads nowhere but down: pose files have ../a.png and /b/a.png."""
    parts = [part.replace(":", "_") for part in PurePosixPath(name).parts]
    return "/".join(part for part in parts if part not in ("/", "//", ".."))


def _mode(settings: Settings, saved: SavedModel, progress: Progress) -> RenderMode:
    """How to draw; moves the splats to where that is done."""
    backend = choose_backend(settings)
    device = tensor_device(backend, settings)
    put_into_force(settings, device)
    prepare_kernels(backend, progress.reading)
    saved.splats.move_to(device)
    return RenderMode.of(settings, backend)
