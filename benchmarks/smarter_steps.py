"""What each of the faster steps brings: held-out PSNR after equal CPU seconds, and how many steps.

    python -m benchmarks.smarter_steps SCENE [--variants classic,coarse,…] [--seconds 30,60]
        [--resolution 4] [--background white] [--seeds 0] [--json FILE]

Every variant trains in this process on one thread, one after the other; the clock is the processor
time of the process in training, so that other programs change little. `NAME=VALUE+NAME=VALUE` is a
variant of one's own, as differences from the classic recipe. `demo` is trained by its preset.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from cuda_rasterizer import set_threads
from engine.dataset.load import load_scene
from engine.dataset.photo_store import PhotoStore
from engine.dataset.scene import Scene
from engine.device import choose_backend
from engine.presets import load_preset
from engine.scene_names import DEMO_NAME, scene_path
from engine.settings import Settings
from engine.training.evaluation import mean_score
from engine.training.trainer import Trainer

Row = dict[str, object]

VARIANTS = {
    "classic": "",
    "coarse": "coarse_halvings=2+coarse_steps=250",
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


def main() -> None:
    """Measure, and print a line for each variant, seed and mark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scene")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--seconds", default="30,60")
    parser.add_argument("--resolution", default="0")
    parser.add_argument("--background", default="black")
    parser.add_argument("--seeds", default="0")
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
