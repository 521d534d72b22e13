"""Command line: `python -m scripts.make_demo_scene [FOLDER]` writes photos and COLMAP files."""

import argparse
import multiprocessing
from pathlib import Path

from PIL import Image

from scripts.make_demo_scene.colmap_files import write_model
from scripts.make_demo_scene.photos import photo_name, trace
from scripts.make_demo_scene.sparse_points import sparse_points
from scripts.make_demo_scene.viewpoints import FOCAL, HEIGHT, WIDTH, viewpoints

DEMO = Path(__file__).resolve().parent.parent.parent / "resources" / "demo"
TRAINING_QUALITY, HELD_OUT_QUALITY = 90, 97  # what measures should be close to the truth
HELD_OUT_EVERY = 8
POINT_COUNT = 4_500


def main() -> None:
    """Trace every photo (ten minutes on two idle cores) and write the scene."""
    parser = argparse.ArgumentParser(description="Make the demo scene.")
    parser.add_argument("folder", nargs="?", type=Path, default=DEMO)
    parser.add_argument("--samples-per-side", type=int, default=3)
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    arguments = parser.parse_args()
    images = arguments.folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    poses = viewpoints()
    jobs = [(number, arguments.samples_per_side) for number in range(len(poses))]
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        traced = pool.starmap(trace, jobs, chunksize=1)
    names = [photo_name(number) for number in range(len(poses))]
    for number, (picture, _) in enumerate(traced):
        quality = TRAINING_QUALITY if number % HELD_OUT_EVERY else HELD_OUT_QUALITY
        Image.fromarray(picture).save(images / names[number], quality=quality, subsampling=0)
    points = sparse_points(
        [picture for picture, _ in traced],
        [depth for _, depth in traced],
        poses,
        FOCAL,
        POINT_COUNT,
        seed=0,
    )
    model = arguments.folder / "sparse" / "0"
    write_model(model, names, poses, points, width=WIDTH, height=HEIGHT, focal=FOCAL)
    files = [path for path in arguments.folder.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files) / 1e6
    print(f"{len(names)} photos, {len(points)} points, {size:.2f} MB in {arguments.folder}")


if __name__ == "__main__":
    main()
