"""Finding a compiler, and a cache that several processes can use at once."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from inferspec import compiler

from . import process, runtime

ANSWER = 'extern "C" int answer() { return 42; }'
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, compiler.CANDIDATES)), reason="there is no C++ compiler")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("METALSIM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def built(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


def call(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).answer())


# Finding a compiler


def test_without_a_compiler_one_line_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("METALSIM_CXX", raising=False)
    for use in (
        compiler.compiler,
        lambda: compiler.shared_library(ANSWER, [], label="answer"),
        lambda: compiler.preprocess("", [], {}),
        runtime.runtime_library,
    ):
        with pytest.raises(compiler.NoCompiler) as caught:
            use()
        message = str(caught.value)
        assert "\n" not in message
        assert "none of c++, g++, clang++ is there" in message
        assert "apt install g++" in message
        assert "xcode-select --install" in message


def fake_compiler(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("#!/bin/sh\necho fake\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_first_compiler_on_the_path_is_taken_and_the_environment_overrides_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("METALSIM_CXX", raising=False)
    clang = fake_compiler(tmp_path, "clang++")
    assert compiler.compiler() == str(clang)
    gcc = fake_compiler(tmp_path, "g++")
    assert compiler.compiler() == str(gcc)
    mine = fake_compiler(tmp_path, "mine++")
    monkeypatch.setenv("METALSIM_CXX", str(mine))
    assert compiler.compiler() == str(mine)
    monkeypatch.setenv("METALSIM_CXX", "none++")
    with pytest.raises(compiler.NoCompiler, match="METALSIM_CXX names 'none\\+\\+', which is no program"):
        compiler.compiler()


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METALSIM_CACHE", str(tmp_path / "mine"))
    assert compiler.cache_folder() == tmp_path / "mine"
    assert (tmp_path / "mine").is_dir()
    monkeypatch.delenv("METALSIM_CACHE")
    monkeypatch.setattr(compiler, "MAC", False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compiler.cache_folder() == tmp_path / "xdg" / "metalsim"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert compiler.cache_folder() == tmp_path / "home" / ".cache" / "metalsim"
    monkeypatch.setattr(compiler, "MAC", True)
    assert compiler.cache_folder() == tmp_path / "home" / "Library" / "Caches" / "metalsim"


def test_a_cache_that_cannot_be_made_is_an_error_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("METALSIM_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(
        OSError, match=r"what is compiled cannot be kept in .*file/cache .*name a folder in METALSIM_CACHE"
    ):
        compiler.cache_folder()


# The cache


@needs_compiler
def test_what_is_built_once_is_found_again(cache: Path) -> None:
    first = compiler.shared_library(ANSWER, [], label="the answer")
    assert call(first) == 42
    assert first.name.startswith("the_answer-")
    made = first.stat().st_ino
    assert compiler.shared_library(ANSWER, [], label="the answer") == first
    assert first.stat().st_ino == made
    assert built(cache) == [first.name]


@needs_compiler
def test_a_cache_may_be_named_from_where_one_is_or_from_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("METALSIM_CACHE", "mine")
    assert call(compiler.shared_library(ANSWER, [], label="answer")) == 42
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("METALSIM_CACHE", "~/mine")
    assert compiler.cache_folder() == tmp_path / "mine"


@needs_compiler
@pytest.mark.parametrize("kept", [0, 100])
def test_what_was_cut_is_built_again(cache: Path, kept: int) -> None:
    library = compiler.shared_library(ANSWER, [], label="answer")
    os.truncate(library, kept)
    assert compiler.shared_library(ANSWER, [], label="answer") == library
    assert call(library) == 42
    made = library.stat().st_ino
    assert compiler.shared_library(ANSWER, [], label="answer") == library
    assert library.stat().st_ino == made


@pytest.mark.skipif(shutil.which("false") is None, reason="there is no program that only fails")
def test_a_compiler_that_fails_without_a_word_is_named_with_its_exit_code(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METALSIM_CXX", "false")
    for use in (
        lambda: compiler.preprocess("", [], {}),
        lambda: compiler.shared_library(ANSWER, [], label="answer"),
    ):
        with pytest.raises(compiler.CompileError, match=r"/false .* said nothing and ended with exit code 1$"):
            use()


@needs_compiler
def test_source_flags_headers_and_compiler_each_make_another_library(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "answer.h").write_text("#define ANSWER 1")
    source = '#include "answer.h"\nextern "C" int answer() { return ANSWER + EXTRA; }'

    def library(text: str = source, extra: int = 0) -> Path:
        return compiler.shared_library(text, [f"-DEXTRA={extra}"], includes=[headers], label="answer")

    first = library()
    assert call(first) == 1
    assert call(library(extra=1)) == 2
    assert call(library(source + "\n")) == 1
    (headers / "answer.h").write_text("#define ANSWER 5")
    assert call(library()) == 5
    (headers / "answer.h").write_text("#define ANSWER 1")
    assert library() == first
    path = compiler.compiler()
    newer = compiler._Identity(compiler.is_clang(), "another version")
    monkeypatch.setattr(compiler, "_identity", lambda _: newer)
    assert library() != first
    assert compiler.compiler() == path
    assert len(built(cache)) == 5


@needs_compiler
def test_what_nobody_asked_for_in_months_is_removed_when_something_new_is_built(cache: Path) -> None:
    used, unused = (compiler.shared_library(ANSWER, [f"-DN={n}"], label=f"n{n}") for n in range(2))
    long_ago = time.time() - 100 * 24 * 3600
    for library in (used, unused):
        os.utime(library, (long_ago, long_ago))
    assert compiler.shared_library(ANSWER, ["-DN=0"], label="n0") == used
    new = compiler.shared_library(ANSWER, ["-DN=2"], label="n2")
    assert built(cache) == sorted([used.name, new.name])


MAC_TOOLS = {
    "c++": 'while [ $# -gt 0 ]; do if [ "$1" = -o ]; then echo made > "$2"; fi; shift; done',
    "dsymutil": 'mkdir -p "$2/Contents/Resources/DWARF" && touch "$2/Contents/Resources/DWARF/${3##*/}"',
}
"""What macOS's tools are asked for and make, in a line of shell each."""


def test_on_macos_a_library_and_its_debug_information_have_the_name_they_are_looked_for_by(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, does in MAC_TOOLS.items():
        fake_compiler(tmp_path, name).write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/{name}.log\n{does}\n')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("METALSIM_CXX", raising=False)
    monkeypatch.setattr(compiler, "MAC", True)
    monkeypatch.setattr(compiler, "LIBRARY_SUFFIX", ".dylib")
    library = compiler.shared_library(ANSWER, [], label="answer")
    information = cache / f"{library.name}.dSYM"
    assert (information / "Contents" / "Resources" / "DWARF" / library.name).is_file()
    assert f"-install_name {library}\n" in (tmp_path / "c++.log").read_text()
    os.utime(library, (0, 0))
    compiler.shared_library(ANSWER, ["-DN"], label="another")
    assert not library.exists()
    assert not information.exists()


BUILD = """
import sys, time
from pathlib import Path
sys.path[:0] = {path!r}
from inferspec import compiler
while not Path({go!r}).exists():
    time.sleep(0.01)
print(compiler.shared_library({source!r}, ["-O2"], label="answer"))
"""


@needs_compiler
def test_processes_that_build_the_same_at_once_compile_it_once(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A compiler that writes down each time it is asked to compile, and takes its time.
    log, real = tmp_path / "log", compiler.compiler()
    slow = tmp_path / "c++"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *" -c "*) echo >> {log}; sleep 0.3;; esac\nexec {real} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("METALSIM_CXX", str(slow))
    go = tmp_path / "go"
    script = BUILD.format(path=sys.path, go=str(go), source=ANSWER)
    workers = [subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    go.touch()
    paths = {worker.communicate(timeout=60)[0].strip() for worker in workers}
    (path,) = paths
    assert call(Path(path)) == 42
    assert log.read_text() == "\n"
    assert built(cache) == [Path(path).name]


@needs_compiler
def test_nothing_is_left_of_a_build_that_failed(cache: Path) -> None:
    with pytest.raises(compiler.CompileError):
        compiler.shared_library("nonsense", [], label="nonsense")
    assert built(cache) == []
    assert [path.name for path in cache.iterdir()] == ["locks"]


# Errors


@needs_compiler
def test_an_error_names_the_place_that_line_directives_give(cache: Path) -> None:
    source = '#line 7 "flash.metal"\nint f() {\n  return unknown;\n}\n'
    with pytest.raises(compiler.CompileError) as caught:
        compiler.shared_library(source, ["-w"], label="flash")
    assert re.match(r"flash\.metal:8:\d+: error: .*unknown", caught.value.diagnostics[0])
    assert str(caught.value).startswith("flash does not compile:\nflash.metal:8:")


@needs_compiler
def test_errors_beyond_a_dozen_are_only_counted(cache: Path) -> None:
    with pytest.raises(compiler.CompileError) as caught:
        compiler.shared_library(
            "\n".join(f"int function{n}() {{ return {n} + unknown; }}" for n in range(15)), [], label="many"
        )
    assert len(caught.value.diagnostics) == 13
    assert caught.value.diagnostics[-1] == "and 3 more"


# Sources in any language

ELSEWHERE = """
import locale, sys
sys.path[:0] = {path!r}
from inferspec import compiler
assert locale.getencoding().lower() not in ("utf-8", "utf8"), locale.getencoding()
print(compiler.shared_library({source!a}, [], label="answer"))
"""


@needs_compiler
def test_a_source_of_any_letters_is_built_whatever_letters_the_users_locale_has(cache: Path) -> None:
    script = ELSEWHERE.format(path=sys.path, source=ANSWER + " // β → α")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", script], env=os.environ | plain, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert call(Path(done.stdout.strip())) == 42


# Preprocessing


@needs_compiler
def test_preprocessing_expands_macros_and_the_given_headers_only(tmp_path: Path) -> None:
    (tmp_path / "metal_stdlib").write_text("int from_stub;")
    text = "#include <metal_stdlib>\nint value = VERSION;\n"
    out = compiler.preprocess(text, [tmp_path], {"VERSION": "320"})
    assert "int from_stub;" in out
    assert "int value = 320;" in out
    with pytest.raises(compiler.CompileError, match=r"<stdin>:1:\d+: fatal error: .*vector"):
        compiler.preprocess("#include <vector>", [tmp_path], {})


# What the runtime is made of


def test_every_part_of_the_runtime_is_built_or_is_a_program_of_its_own() -> None:
    sources = {path.stem for path in (process.HERE / "runtime").glob("*.cpp")}
    assert sources == {*process.PARTS, "process", "self_test"}
