"""Whether a screen can be reached, and what draws OpenGL on it; found out in a child process.

Qt aborts the process when the display is dead or a library is missing, and a broken GL driver may
take the process with it. So a child tries first. It is started early and read late, while the
parent imports torch.
"""

import dataclasses
import json
import os
import subprocess
import sys

PROBE = """
import json
from PySide6.QtGui import QGuiApplication, QOffscreenSurface, QOpenGLContext
application = QGuiApplication(["probe"])
found = {"platform": application.platformName(), "renderer": None}
context, surface = QOpenGLContext(), QOffscreenSurface()
surface.create()
if context.create() and context.makeCurrent(surface):
    found["renderer"] = context.functions().glGetString(0x1F01)
    context.doneCurrent()
print(json.dumps(found))
"""
LIMIT_S = 20.0
SOFTWARE_RENDERERS = ("llvmpipe", "softpipe", "swrast", "software rasterizer", "gdi generic")
WITHOUT_SCREEN = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


@dataclasses.dataclass(frozen=True)
class DisplayFound:
    """What the probe found; `trouble` is "" when windows can be opened."""

    platform: str
    renderer: str | None
    trouble: str


@dataclasses.dataclass(frozen=True)
class ViewportChoice:
    """Which viewport to make, and the reason in a sentence."""

    kind: str  # painted or gl
    reason: str


class DisplayProbe:
    """A running probe; `result` waits for it."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-c", PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def result(self, limit_s: float = LIMIT_S) -> DisplayFound:
        """What the child found out, or why it did not."""
        try:
            output, errors = self._child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.communicate()
            return DisplayFound("", None, f"the display gave no answer within {limit_s:g} s")
        try:
            found = json.loads(output)
        except json.JSONDecodeError:
            return DisplayFound("", None, _trouble(errors, self._child.returncode))
        return DisplayFound(found["platform"], found["renderer"], "")


def _trouble(errors: str, code: int) -> str:
    """One sentence out of what Qt printed before it gave up."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if not lines:
        return f"Qt ended with code {code} and no word"
    telling = ("could not connect", "Could not load", "is needed", "No module", "cannot open")
    best = next((line for line in lines if any(word in line for word in telling)), lines[-1])
    if not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        return f"no display is set (DISPLAY is empty); Qt says: {best}"
    return best


def choose_viewport(wish: str, found: DisplayFound) -> ViewportChoice:
    """`auto`, `gl` or `painted` as one of the latter two, with the reason."""
    renderer = found.renderer
    if wish == "painted":
        return ViewportChoice("painted", "The view is painted, as asked.")
    if renderer is None:
        asked = " OpenGL was asked for but" if wish == "gl" else ""
        return ViewportChoice(
            "painted", f"The view is painted:{asked} no OpenGL context can be had here."
        )
    if wish == "gl":
        return ViewportChoice("gl", f"The view uses OpenGL ({renderer}), as asked.")
    if any(name in renderer.lower() for name in SOFTWARE_RENDERERS):
        return ViewportChoice(
            "painted", f"The view is painted: OpenGL would be drawn in software ({renderer})."
        )
    return ViewportChoice("gl", f"The view uses OpenGL ({renderer}).")
