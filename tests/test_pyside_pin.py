"""PySide6 stays at a release that keeps its references to None.

6.12.0 on Python 3.11 loses one at every void Qt call and aborts the process after some thousands.
"""

import os
import tomllib
from importlib.metadata import version

from tests.child_process import PROJECT, run_python

CALLS = 500
PROBE = f"""
import sys
from PySide6.QtWidgets import QApplication, QLabel
application = QApplication([])
label = QLabel()
label.setText("warm")
before = sys.getrefcount(None)
for number in range({CALLS}):
    label.setText("text")
print(sys.getrefcount(None) - before)
"""


def test_void_qt_calls_lose_no_reference_to_none():
    probe = run_python("-c", PROBE, variables=os.environ | {"QT_QPA_PLATFORM": "offscreen"})
    assert probe.returncode == 0, probe.stderr
    # A few may come and go with caches; the fault changes the count by one a call. (From Python
    # 3.12 on None is immortal and its count stands still.)
    assert abs(int(probe.stdout)) < CALLS // 10


def test_the_pinned_releases_are_the_ones_in_use():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package in ("PySide6-Essentials", "shiboken6"):
        assert f"{package}=={version(package)}" in project["dependencies"]
    pins = (PROJECT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    assert f"pyside6-essentials=={version('PySide6-Essentials')}" in pins
    assert f"shiboken6=={version('shiboken6')}" in pins
