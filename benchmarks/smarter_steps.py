"""What each of the faster steps brings: held-out PSNR after equal CPU seconds, and how many steps.

    python -m benchmarks.smarter_steps SCENE [--variants classic,coarse,…] [--seconds 30,60]
        [--resolution 4] [--background white] [--seeds 0] [--json FILE]

    python -m benchmarks.smarter_steps SCENE --costs STEPS|RUN [--variants rest,visible,morton]

Every variant trains in this process on one thread, one after the other; the clock is the processor
time of the process in training, so that other programs change little. `NAME=VALUE+NAME=VALUE` is a
variant of one's own, as differences from the classic recipe. `demo` is trained by its preset.

`--costs` trains STEPS steps without densifying (so that a random start keeps its splats), or takes
the last checkpoint of the run folder RUN, copies it for each variant, and lets the copies take
turns at degree 3: medians of processor time a step.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from torch import Tensor

from cuda_rasterizer import set_threads
from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Scene
from engine.device import choose_backend
from engine.presets import load_preset
from engine.run.checkpoint import load_checkpoint
from engine.run.run_folder import RunFolder
from engine.scene_names import DEMO_NAME, scene_path
from engine.settings import Settings, all_settings
from engine.training.evaluation import mean_score
from engine.training.space_order import morton_order
from engine.training.trainer import Trainer

Row = dict[str, object]
State = tuple[dict[str, Tensor], dict[str, Any]]
ROUNDS = 6
STEPS_A_TURN = 8  # among them as many that train all colour as there are in a long run

VARIANTS = {
    "classic": "",
    "coarse": "coarse_halvings=2+coarse_steps=500",
    "rest": "sh_rest_interval=4",
    "visible": "visible_only=true",
    "morton": "morton_interval=1000",
}


def settings_of(variant: str, base: Settings) -> Settings:
    """The settings of a built-in variant, of a preset of its name, or of NAME=VALUE pairs."""
    if variant == "cpu-fast":
        return base.updated(load_preset(variant).differences())
    pairs = VARIANTS.get(variant, variant)
    return base.updated(dict(pair.split("=", 1) for pair in pairs.split("+") if pair))


def measure(
    scene: Scene, photos: PhotoStore, settings: Settings, marks: list[float]
) -> list[dict[str, float]]:
    """Train until the last mark, in seconds of processor time, and score at each."""
    trainer = Trainer(scene, photos, settings, backend=choose_backend(settings))
    spent, scores = 0.0, []
    for mark in marks:
        start = time.process_time() - spent
        while spent < mark and trainer.step < settings.run.iterations:
            trainer.step_once()
            spent = time.process_time() - start
        psnr, ssim = mean_score(list(trainer.evaluate()))
        scores.append(
            {
                "seconds": spent,
                "steps": trainer.step,
                "splats": len(trainer.model),
                "psnr": psnr,
                "ssim": ssim,
            }
        )
    return scores


def _sorted(trainer: Trainer) -> dict[str, Tensor]:
    """The splats along the curve; moments stay, which changes no time."""
    return trainer.model.gathered(morton_order(trainer.model.means.detach()))


def trained(scene: Scene, photos: PhotoStore, base: Settings, what: str) -> State:
    """The state after so many steps without densifying, or that of a run folder's checkpoint."""
    if not what.isdecimal():
        path = RunFolder(Path(what)).last_checkpoint()
        if path is None:
            raise SystemExit(f"{what} is no run folder with a checkpoint")
        saved = load_checkpoint(path)
        return saved.tensors, dict(saved.facts)
    early = base.changed("densify_stop", 0)
    trainer = Trainer(scene, photos, early, backend=choose_backend(early))
    while trainer.step < int(what):
        trainer.step_once()
    return trainer.export_state()


def costs(
    scene: Scene, photos: PhotoStore, base: Settings, variants: list[str], state: State
) -> dict[str, float]:
    """Milliseconds of processor time a step, by variant, on copies of one run that take turns."""
    tensors, header = state
    calm = base.updated({"densify_stop": 0})
    copies = {}
    for variant in dict.fromkeys(["classic", *variants]):
        wanted = settings_of(variant, calm)
        values = {info.name: wanted[info.name] for info in all_settings()}
        copies[variant] = Trainer.from_state(
            *(scene, photos, tensors, {**header, "settings": values, "sh_reached": 3}),
            backend=choose_backend(calm),
        )
        if wanted.faster_steps.morton_interval:
            copies[variant].model.replace(_sorted(copies[variant]))
    times: dict[str, list[float]] = {variant: [] for variant in copies}
    for _ in range(ROUNDS):
        for variant, trainer in copies.items():
            start = time.process_time()
            for _ in range(STEPS_A_TURN):
                trainer.step_once()
            times[variant].append((time.process_time() - start) * 1e3 / STEPS_A_TURN)
    print(f"{len(copies['classic'].model):,} splats")
    return {variant: statistics.median(found) for variant, found in times.items()}


def main() -> None:
    """Measure, and print a line for each variant, seed and mark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scene")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--seconds", default="30,60")
    parser.add_argument("--resolution", default="0")
    parser.add_argument("--background", default="black")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--costs", metavar="STEPS|RUN")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    marks = [float(text) for text in arguments.seconds.split(",")]
    base = load_preset("demo") if arguments.scene == DEMO_NAME else Settings()
    base = base.updated(
        {"resolution": arguments.resolution, "background": arguments.background, "threads": 1}
    )
    set_threads(1)
    scene = load_scene(scene_path(arguments.scene), base, lambda *_: None, lambda: False)
    photos = PhotoStore(scene, base)
    scene = photos.load_all()
    if arguments.costs:
        state = trained(scene, photos, base, arguments.costs)
        found = costs(scene, photos, base, arguments.variants.split(","), state)
        for variant, milliseconds in found.items():
            print(f"| {scene.name} | {variant} | {milliseconds:.1f} ms |")
        return
    rows: list[Row] = []
    print("| scene | variant | seed | CPU s | steps | splats | PSNR | SSIM |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for seed in arguments.seeds.split(","):
        for variant in arguments.variants.split(","):
            settings = settings_of(variant, base).changed("seed", seed)
            for score in measure(scene, photos, settings, marks):
                rows.append({"scene": scene.name, "variant": variant, "seed": int(seed), **score})
                print(
                    f"| {scene.name} | {variant} | {seed} | {score['seconds']:.0f} "
                    f"| {score['steps']:,.0f} | {score['splats']:,.0f} | {score['psnr']:.2f} "
                    f"| {score['ssim']:.4f} |"
                )
                sys.stdout.flush()
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
