"""Large photos on a processor: what to do is said, and only where there is something to do."""

import dataclasses

import pytest

from engine.dataset.load import load_scene
from engine.dataset.scene import Scene
from engine.settings import Settings
from engine.size_advice import size_advice
from tests.engine.dataset.scene_files import make_views, write_colmap
from tests.engine.driving import SMALL


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    root = tmp_path_factory.mktemp("scene")
    write_colmap(root, make_views(8, lens=SMALL))
    return load_scene(root, Settings())


def resized(scene: Scene, width: int, height: int) -> Scene:
    photos = [
        dataclasses.replace(photo, camera=photo.camera.resized(width, height))
        for photo in scene.photos
    ]
    return dataclasses.replace(scene, photos=tuple(photos))


@pytest.mark.parametrize(
    ("size", "share", "target"),
    [((1024, 768), "1/2", "512"), ((1080, 1920), "1/2", "540"), ((4000, 3000), "1/8", "500")],
)
def test_large_photos_are_met_with_a_size_that_fits(
    small: Scene, size: tuple[int, int], share: str, target: str
) -> None:
    advice = size_advice(resized(small, *size), "cpu")
    assert advice is not None
    assert share in advice
    assert f"set resolution to {target}" in advice


def test_nothing_is_said_of_small_photos_or_on_a_gpu(small: Scene) -> None:
    assert size_advice(small, "cpu") is None
    assert size_advice(resized(small, 640, 480), "cpu") is None
    assert size_advice(resized(small, 4000, 3000), "cuda") is None
