"""Whether a window can be opened here, asked of a child process.

Qt aborts the whole process when the display cannot be reached or a library of its xcb plugin is
missing, so nobody may find that out in the process that matters.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Final

PROBE_SECONDS = 20.0  # an X server across a slow network answers within this
_INVISIBLE: Final = ("offscreen", "minimal", "minimalegl", "vnc")
_PROBE: Final = """
import ctypes, glob, os, sys
from PySide6.QtCore import QLibraryInfo
if sys.platform == "linux" and os.environ.get("DISPLAY"):
    plugins = QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath)
    named = os.environ.get("QT_QPA_PLATFORM")
    if named == "xcb" or not named and not os.environ.get("WAYLAND_DISPLAY"):
        for plugin in glob.glob(os.path.join(plugins, "platforms", "libqxcb.so")):
            ctypes.CDLL(plugin)
from PySide6.QtWidgets import QApplication
app = QApplication(["probe"])
print("platform", app.platformName())
"""
_LIBRARY_PACKAGES: Final = {  # Debian's and Ubuntu's names of what Qt needs and does not bring
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxcb.so.1": "libxcb1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libGLX.so.0": "libglx0",
    "libOpenGL.so.0": "libopengl0",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
}


def display_problem(environment: Mapping[str, str] | None = None) -> str | None:
    """Why no window can be opened, in one sentence; None when one can.

    `environment` stands for this process's own. Takes about a second where a display is named.
    """
    variables = dict(os.environ if environment is None else environment)
    platform = variables.get("QT_QPA_PLATFORM", "").split(":")[0]
    if platform in _INVISIBLE:
        return f"QT_QPA_PLATFORM is {platform}, which shows no windows."
    if sys.platform == "linux" and not platform.startswith(("eglfs", "linuxfb")):
        displays = [variables.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")]
        if not any(displays):
            return "No display is set: neither DISPLAY nor WAYLAND_DISPLAY."
    try:
        probe = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"The display {_named(variables)} did not answer within {PROBE_SECONDS:.0f} s."
    if probe.returncode == 0 and "platform" in probe.stdout:
        return None
    return _explained(probe.stderr, variables)


def _named(variables: Mapping[str, str]) -> str:
    return variables.get("WAYLAND_DISPLAY") or variables.get("DISPLAY") or "(none named)"


def _explained(errors: str, variables: Mapping[str, str]) -> str:
    """A sentence for what the probe wrote before it ended."""
    library = re.search(r"(lib[\w.+-]+\.so[.\d]*): cannot open shared object", errors)
    if library:
        package = _LIBRARY_PACKAGES.get(library[1])
        remedy = f"; install it by: sudo apt install {package}" if package else ""
        return f"Qt needs the system library {library[1]}, which is missing{remedy}."
    if "could not connect to display" in errors or "Failed to create wl_display" in errors:
        return f"The display {_named(variables)} cannot be reached."
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = lines[-1] if lines else "it ended without a word"
    return f"Qt cannot open a window on the display {_named(variables)}: {told}"
