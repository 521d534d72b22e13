"""Command line: `python -m scripts.make_demo_scene [FOLDER]` writes photos and COLMAP files."""

import argparse
import os
from pathlib import Path

from PIL import Image

from scripts.make_demo_scene.colmap_files import write_model
from scripts.make_demo_scene.photos import photo_name, take_photos
from scripts.make_demo_scene.sparse_points import sparse_points
from scripts.make_demo_scene.viewpoints import FOCAL, HEIGHT, WIDTH, viewpoints

DEMO = Path(__file__).resolve().parent.parent.parent / "resources" / "demo"
SAMPLES_PER_SIDE = 5
HELD_OUT_EVERY = 8
TRAINING_QUALITY, HELD_OUT_QUALITY = 90, 96  # what measures should be close to the truth
POINT_COUNT = 4_500


def main() -> None:
    """Trace every photo (some three minutes on two cores) and write the scene."""
    parser = argparse.ArgumentParser(description="Make the demo scene.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--samples-per-side", type=int, default=SAMPLES_PER_SIDE)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    poses = viewpoints()
    pictures, depths = take_photos(poses, arguments.samples_per_side, arguments.processes)
    names = [photo_name(number) for number in range(len(poses))]
    images = arguments.folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for number, picture in enumerate(pictures):
        quality = TRAINING_QUALITY if number % HELD_OUT_EVERY else HELD_OUT_QUALITY
        Image.fromarray(picture).save(images / names[number], quality=quality, subsampling=0)
    points = sparse_points(pictures, depths, poses, FOCAL, POINT_COUNT, seed=0)
    model = arguments.folder / "sparse" / "0"
    write_model(model, names, poses, points, width=WIDTH, height=HEIGHT, focal=FOCAL)
    files = [path for path in arguments.folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{len(names)} photos, {len(points)} points, {size:.2f} MB in {arguments.folder}")


if __name__ == "__main__":
    main()
