"""How is an adapter found, and what of it is offered?"""

from __future__ import annotations

from pathlib import Path

import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.bridge.locate import registered
from inferspec.tools.adapter_files import ROPE, module, opened, refused


@pytest.mark.parametrize(
    "spec", ["mine", "./mine.py", "mine:OBJECT", "mine:Class", "mine:DICT", "./mine.py:OBJECT", "package.deep"]
)
def test_a_subject_is_a_module_a_file_or_an_object_in_one(folder, spec):
    text = ROPE + "class Class:\n    rope = staticmethod(rope)\nOBJECT = Class()\nDICT = {'rope': rope}\n"
    module(folder, text)
    module(folder, text, "package/deep.py")
    assert list(load(spec).targets) == ["RoPE"]


@pytest.mark.parametrize("spec", ["./package/deep/adapter.py", "package.deep.adapter"])
def test_a_file_of_a_package_may_import_from_beside_it(folder, spec):
    module(folder, "", "package/__init__.py")
    module(folder, "", "package/deep/__init__.py")
    module(folder, ROPE, "package/deep/rotary.py")
    module(folder, "from ..deep.rotary import rope", "package/deep/adapter.py")
    assert list(load(spec).targets) == ["RoPE"]


@pytest.mark.parametrize("spec", ["./package", "./package/", "package"])
def test_a_package_offers_what_its_modules_of_the_components_names_offer(folder, spec):
    module(folder, "", "package/__init__.py")
    module(folder, ROPE, "package/rope.py")
    module(folder, "import mlx.core\ndef rms_norm(x, weight): return x", "package/rms_norm.py")
    found = load(spec)
    assert list(found.targets) == ["RoPE", "RMSNorm"]
    assert found.kind.name == "mlx"


def test_what_is_imported_of_the_standard_library_is_not_offered(folder):
    module(folder, "from json import load\n" + ROPE)
    assert list(load("mine").targets) == ["RoPE"]


def test_a_registered_name_is_a_subject():
    assert registered()["impl"] == "inferspec.impl"
    found = load("impl")
    assert found.origin.endswith("impl/__init__.py")
    assert "RoPE" in found.targets


@pytest.mark.parametrize("local", ["impl.py", "impl/rope.py", "impl/__init__.py"])
def test_a_registered_name_that_is_also_here_is_refused(folder, local):
    module(folder, ROPE, local)
    module(folder, ROPE, str(Path(local).with_name("rope.py")))
    assert refused("impl").endswith(f"say ./{'impl.py' if local == 'impl.py' else 'impl'} or inferspec.impl")
    assert "RoPE" in HostedSubject(f"./{local.split('/')[0]}").description.offers


def test_a_folder_without_code_does_not_shadow_a_registered_name(folder):
    module(folder, "notes", "impl/readme.txt")
    assert load("impl").name == "inferspec.impl"


def test_the_folder_of_the_run_is_a_subject(folder, monkeypatch):
    module(folder, ROPE, "mine_too/rope.py")
    monkeypatch.chdir(folder / "mine_too")
    assert "RoPE" in HostedSubject(".").description.offers


def test_a_function_alone_is_told_where_it_goes(folder):
    module(folder, "def turned(x): return x", "one.py")
    assert "goes in the place of another subject's: --with NAME=./one.py:turned" in refused("./one.py:turned")


def test_a_file_with_the_name_of_a_loaded_module_is_not_mistaken_for_it(folder):
    module(folder, ROPE, "random.py")
    assert "rename random.py" in refused("./random.py")


def test_a_file_with_the_name_of_a_module_that_the_host_needs_does_no_harm(folder):
    module(folder, ROPE)
    module(folder, "raise SystemExit('the wrong module')", "tempfile.py")
    session = opened("./mine.py")
    session.close()
    assert not session.smoke
