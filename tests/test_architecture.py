"""The layers hold: app over engine over cuda_rasterizer, Qt in app, torch before Qt."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
QT = {"PySide6", "shiboken6", "OpenGL"}
RASTERIZER_NEEDS = {"torch", "numpy", "jaxtyping", "cuda_rasterizer"}


def imported_packages(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or ".").split(".")[0])
    return names


def sources(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no sources in {package}"
    return found


def test_the_import_contracts_of_pyproject_are_kept():
    # In a process of its own: it would switch off the loggers of every test behind this one.
    code = (
        "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rasteriser_imports_torch_and_numpy_and_nothing_else():
    for path in sources("cuda_rasterizer"):
        foreign = imported_packages(path) - RASTERIZER_NEEDS - set(sys.stdlib_module_names)
        assert not foreign, f"{path.relative_to(ROOT)} imports {sorted(foreign)}"


@pytest.mark.parametrize("package", ["engine", "cuda_rasterizer"])
def test_qt_is_imported_in_app_only(package):
    for path in sources(package):
        qt = imported_packages(path) & QT
        assert not qt, f"{path.relative_to(ROOT)} imports {sorted(qt)}"


def test_the_entry_imports_torch_before_anything_that_brings_qt():
    # Both bring OpenMP and C++ run-times; the window needs torch's to be found first.
    text = (ROOT / "app" / "application.py").read_text(encoding="utf-8")
    assert text.index("import torch") < text.index("from app.window_program import")
    code = "import sys, app.__main__, app.application; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert not (QT | {"torch"}) & set(found.stdout.split())


def test_no_import_is_relative():
    for package in ("app", "engine", "cuda_rasterizer"):
        for path in sources(package):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    assert node.level == 0, f"{path.relative_to(ROOT)}: {ast.unparse(node)}"
