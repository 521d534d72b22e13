"""The wheel, in an empty venv away from the checkout, runs the demo."""

import pytest

from tests.packaging.installed_program import (
    NATIVE,
    build_wheel,
    hasty_compiler,
    install_in_empty_venv,
    run_installed,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # a minute where nothing else goes on


def test_the_wheel_alone_trains_the_demo_with_its_kernels(tmp_path):
    built = build_wheel(tmp_path, CXX=hasty_compiler(tmp_path), **{NATIVE: "1"})
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    assert "-py3-none-" in wheel.name, "the kernels know no Python: one wheel serves every version"
    assert not wheel.name.endswith("-any.whl")
    programs = install_in_empty_venv(tmp_path)

    where = run_installed(
        programs,
        "python",
        "-c",
        "import app, cuda_rasterizer as c; print(app.__file__, c.resolve_backend('auto'))",
        folder=tmp_path,
    )
    assert str(tmp_path / "venv") in where.stdout, "the program should come from the wheel"
    assert where.stdout.split()[-1] == "cpu", where.stdout + where.stderr

    kernels = run_installed(
        programs,
        "python",
        "-c",
        "from cuda_rasterizer.cuda import sources as s; print(*s.modules(), *s.headers())",
        folder=tmp_path,
    )
    assert {"blend", "project", "params.h", "dialect.h"} < set(kernels.stdout.split()), (
        "a GPU's kernels are compiled from sources in the wheel"
    )

    flags = ("--iterations", "5", "--output", "run")
    trained = run_installed(programs, "python", "-m", "app.demo", *flags, folder=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "PSNR" in trained.stdout.strip().splitlines()[-1]
    assert list((tmp_path / "run" / "exports").glob("*.ply"))


def test_without_a_compiler_the_install_succeeds_and_the_program_says_what_is_missing(tmp_path):
    built = build_wheel(tmp_path, CXX="/bin/false")
    assert built.returncode == 0, built.stdout + built.stderr
    assert [path.name for path in (tmp_path / "wheel").glob("*-py3-none-any.whl")]
    programs = install_in_empty_venv(tmp_path)
    said = run_installed(programs, "splatscope", "doctor", folder=tmp_path)
    assert "Backend: reference" in said.stdout, said.stdout + said.stderr
    assert "the CPU kernels are not built" in said.stdout
    assert "compiler" in said.stdout, "it should say how to get the fast kernels"


def test_a_broken_build_fails_where_the_kernels_are_required(tmp_path):
    built = build_wheel(tmp_path, CXX="/bin/false", **{NATIVE: "1"})
    assert built.returncode != 0
    assert not list(tmp_path.glob("wheel/*.whl"))
