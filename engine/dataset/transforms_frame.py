"""One frame of a transforms.json: its photo, pose and lens.

`transform_matrix` is camera to world with OpenGL axes (x right, y up, z backward). Intrinsics
stand at the root or in a frame, where the frame's win. Every error names the file, the place in
it, what was found and what was expected.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float

from engine.cameras import invert_pose, opengl_to_opencv
from engine.dataset.posed_files import LensGuess
from engine.dataset.scene import LARGEST_COORDINATE, Distortion
from engine.errors import SceneError

Values = Mapping[str, object]
_FISHEYES = ("OPENCV_FISHEYE", "FISHEYE")
_PERSPECTIVES = ("", "OPENCV", "PINHOLE", "SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL")
_LONGEST_NAME = 1000  # characters; more is a picture written into the file, not the name of one
_SENSIBLE = f"of a sensible size, below {LARGEST_COORDINATE:g}"
_SHOWN = 60  # characters of a wrong value


class Frame:
    """A frame and what the root says for all of them; every method may raise SceneError."""

    def __init__(self, path: Path, index: int, root: Values, values: object) -> None:
        """Frame `index` of the file; its photo's name is read at once."""
        self._path = path
        self._place = f"{path}, frame {index}"
        self._root = root
        if not isinstance(values, dict):
            raise SceneError(
                f"{self._place} is {_shown(values)}; expected an object with 'file_path' and "
                "'transform_matrix'.",
                path=path,
            )
        self._values: Values = values
        self.name = self._name()
        self._place = f"{self._place} ({self.name})"

    def _name(self) -> str:
        written = self._values.get("file_path")
        name = written.replace("\\", "/") if isinstance(written, str) else ""
        while name.startswith("./"):
            name = name[2:]
        if not 0 < len(name) <= _LONGEST_NAME:
            raise self._error("file_path", written, "the name of a photo's file")
        return name

    def world_to_camera(self) -> Float[np.ndarray, "4 4"]:
        """The pose, with OpenCV axes."""
        matrix = self._values.get("transform_matrix")
        expected = f"four rows of four finite numbers {_SENSIBLE}. Export the poses again"
        try:
            values = np.array(matrix)
        except (ValueError, OverflowError) as error:  # rows of unequal length, or no float64
            raise self._error("transform_matrix", matrix, expected) from error
        is_matrix = values.dtype.kind in "iuf" and values.shape in ((4, 4), (3, 4))
        if not is_matrix:
            raise self._error("transform_matrix", matrix, expected)
        for row, column in np.argwhere(~(np.abs(values) < LARGEST_COORDINATE)):
            part = f"row {row + 1}, column {column + 1} of "
            raise self._error("transform_matrix", values[row, column].item(), expected, part)
        pose = np.eye(4)
        pose[:3] = values[:3]
        left, stretch, right = np.linalg.svd(pose[:3, :3])
        # A uniform scale in the matrix does not move the camera's centre: only the rotation counts.
        if stretch[2] <= 0 or stretch[0] > 1.01 * stretch[2] or np.linalg.det(pose[:3, :3]) < 0:
            rigid = "a rigid pose, whose rotation neither mirrors nor stretches"
            raise self._error("transform_matrix", matrix, f"{rigid}. Export the poses again")
        pose[:3, :3] = left @ right
        return invert_pose(opengl_to_opencv(pose))

    def lens(self) -> Distortion | LensGuess:
        """The lens; a guess where the size of the photos is not said."""
        model, extras = self._distortion()
        width, height = (self._number(key, above=0) for key in ("w", "h"))
        focal_x, focal_y = (self._number(key, above=0) for key in ("fl_x", "fl_y"))
        field_x, field_y = (
            self._number(key, above=0, below=np.pi) for key in ("camera_angle_x", "camera_angle_y")
        )
        if not any((focal_x, focal_y, field_x, field_y)):
            raise SceneError(
                f"{self._place} says nothing of the lens; expected 'fl_x' (pixels) or "
                "'camera_angle_x' (radians), at the root or in the frame.",
                path=self._path,
            )
        center_x, center_y = self._number("cx"), self._number("cy")
        guess = LensGuess(model, field_x, field_y, focal_x, focal_y, center_x, center_y, extras)
        if width is None or height is None:
            return guess
        return guess.lens(max(1, round(width)), max(1, round(height)))

    def _distortion(self) -> tuple[str, tuple[float, ...]]:
        """The COLMAP model and its extra parameters that say the same as k1, k2, ... here."""
        name = str(self._get("camera_model") or "").upper()
        k1, k2, k3, k4, p1, p2 = (
            self._number(key) or 0.0 for key in ("k1", "k2", "k3", "k4", "p1", "p2")
        )
        if self._get("is_fisheye") or name in _FISHEYES:
            return "OPENCV_FISHEYE", (k1, k2, k3, k4)
        if name not in _PERSPECTIVES and name != "FULL_OPENCV":
            known = "OPENCV, OPENCV_FISHEYE or PINHOLE. Export perspective photos"
            raise self._error("camera_model", name, known)
        if k4 and name != "FULL_OPENCV":
            raise self._error(
                "k4",
                k4,
                "0 in a perspective camera, where writers disagree on its meaning. Undistort the "
                "photos before, or export with k1, k2, k3, p1, p2",
            )
        if name == "FULL_OPENCV":
            k5, k6 = (self._number(key) or 0.0 for key in ("k5", "k6"))
            return "FULL_OPENCV", (k1, k2, p1, p2, k3, k4, k5, k6)
        if k3:
            return "FULL_OPENCV", (k1, k2, p1, p2, k3, 0.0, 0.0, 0.0)
        if any((k1, k2, p1, p2)):
            return "OPENCV", (k1, k2, p1, p2)
        return "PINHOLE", ()

    def _get(self, key: str) -> object:
        return self._values[key] if key in self._values else self._root.get(key)

    def _number(self, key: str, *, above: float = -np.inf, below: float = np.inf) -> float | None:
        value = self._get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not abs(value) < LARGEST_COORDINATE
        ):
            raise self._error(key, value, f"a finite number {_SENSIBLE}")
        if not above < value < below:
            limit = "" if below == np.inf else f" and below {below:.3g}"
            raise self._error(key, value, f"above {above:g}{limit}")
        return float(value)

    def _error(self, key: str, found: object, expected: str, part: str = "") -> SceneError:
        """A key whose value cannot be used, at the root where the frame does not have it."""
        is_common = key in self._root and key not in self._values
        place = str(self._path) if is_common else self._place
        known = key in self._root or key in self._values
        what = f"{part}'{key}' is {_shown(found)}" if known else f"there is no '{key}'"
        return SceneError(f"{place}: {what}; expected {expected}.", path=self._path, value=found)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
