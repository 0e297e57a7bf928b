"""The C++ compiler, of metalsim and of the CPU kernels: finding it, and building with it into a cache that processes share.

Nothing is built twice: a library's file name is the hash of all that it is made from (its source, the flags, the compiler,
the headers it may include), so an entry is never changed once it is there and needs no bookkeeping.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

CANDIDATES = ("c++", "g++", "clang++")
MAC = sys.platform == "darwin"
LIBRARY_SUFFIX = ".dylib" if MAC else ".so"

KEPT_SECONDS = 60 * 24 * 3600  # since it was last asked for
UNIT = "/metalsim.unit"  # where debug information says that a source was compiled, in place of a scratch folder

# Apart from what a flag's name says: no GNU-unique symbols, or the loader would share a template's static variables
# between kernels that know nothing of each other, and never unload them.
GCC_FLAGS = ("-fno-gnu-unique",)
# What g++ calls one thing and clang++ another, or does without.
CLANG_FLAGS: Mapping[str, tuple[str, ...]] = {
    "-fsingle-precision-constant": ("-Xclang", "-cl-single-precision-constant"),
    # clang leaves a read out that a write to the same place follows: the read may be of nothing.
    "--param=tsan-instrument-func-entry-exit=0": (
        "-mllvm",
        "-tsan-instrument-func-entry-exit=0",
        "-mllvm",
        "-tsan-instrument-read-before-write=1",
    ),
    "-fsanitize-coverage=trace-pc": ("-fsanitize-coverage=bb,no-prune,trace-pc",),
    "-fno-gnu-unique": (),
    "-fexcess-precision=16": (),
    "-fno-thread-jumps": (),
    "-fno-tree-dominator-opts": (),
    "-fno-crossjumping": (),
    # clang moves no read ahead in code that it instruments.
    "-fno-tree-loop-im": (),
    "-fno-ssa-phiopt": (),
}


class NoCompiler(RuntimeError):
    """There is no C++ compiler; the message says how to get one."""


class CompileError(RuntimeError):
    """The compiler refused a source. diagnostics: its errors, with the file and line that `#line` gives them."""

    def __init__(self, label: str, diagnostics: Sequence[str]) -> None:
        self.label = label
        self.diagnostics = tuple(diagnostics)
        super().__init__(f"{label} does not compile:\n" + "\n".join(diagnostics))


@dataclass(frozen=True)
class _Identity:
    """Which compiler this is: clang: its flags' dialect; version: what a cache entry depends on."""

    clang: bool
    version: str


def compiler() -> str:
    """The path of the C++ compiler: $METALSIM_CXX, else the first of c++, g++ and clang++.

    Raises:
        NoCompiler: There is none.
    """
    named = os.environ.get("METALSIM_CXX")
    for candidate in (named,) if named else CANDIDATES:
        if found := shutil.which(candidate):
            return found
    missing = (
        f"METALSIM_CXX names {named!r}, which is no program" if named else f"none of {', '.join(CANDIDATES)} is there"
    )
    raise NoCompiler(
        f"a C++ compiler is needed, and {missing}: install one (Debian, Ubuntu: apt install g++; Fedora: dnf install "
        "gcc-c++; macOS: xcode-select --install), or name one in METALSIM_CXX"
    )


def half_flags() -> tuple[str, ...]:
    """What lets the compiler use this machine's instructions for 16-bit floats; on x86 a conversion is a call without."""
    try:
        processor = Path("/proc/cpuinfo").read_text()
    except OSError:  # macOS, whose arm64 compilers need no flag
        return ()
    return ("-mf16c",) if re.search(r"^flags\s*:.*\bf16c\b", processor, re.M) else ()


def cache_folder() -> Path:
    """Where what is built is kept: $METALSIM_CACHE, else `metalsim` in the user's cache folder. Made if missing."""
    if named := os.environ.get("METALSIM_CACHE"):
        folder = Path(named)
    elif MAC:
        folder = Path.home() / "Library" / "Caches" / "metalsim"
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "metalsim"
    folder = folder.expanduser().absolute()  # what is built there is built in another folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"what is compiled cannot be kept in {folder} ({error}); name a folder in METALSIM_CACHE"
        ) from None
    return folder


def preprocess(text: str, includes: Sequence[Path], defines: Mapping[str, str]) -> str:
    """`text` with its includes and macros expanded and line markers left in; headers are looked for in `includes` only.

    Raises:
        NoCompiler: There is no compiler.
        CompileError: A header is missing, an `#error` is met, or the like.
    """
    command = [compiler(), "-E", "-x", "c++", "-std=c++17", "-nostdinc", "-nostdinc++"]
    command += [f"-I{folder}" for folder in includes]
    command += [f"-D{name}={value}" for name, value in defines.items()]
    done = _run([*command, "-"], text)
    if done.returncode:
        raise CompileError("the source", _diagnostics(done))
    return done.stdout


def shared_library(
    source: str | Mapping[str, str],
    flags: Sequence[str],
    *,
    includes: Sequence[Path] = (),
    links: Sequence[Path] = (),
    link_flags: Sequence[str] = (),
    label: str,
) -> Path:
    """Builds the C++ text `source` as a shared library, or finds it built.

    Args:
        source: One translation unit, or several by file name, which are compiled in parallel.
        flags: For compiling, in g++'s spelling; clang gets its own.
        includes: Folders of headers. The contents of all their files are part of what the library is made from.
        links: Shared libraries that its symbols come from, by absolute path.
        link_flags: For linking.
        label: What messages and the file's name call it.

    Raises:
        NoCompiler: There is no compiler.
        CompileError: It refuses the source.
    """
    linking = ["-shared", *map(str, links), "-lm", *link_flags]
    linking += ["-undefined", "dynamic_lookup"] if MAC else ["-Wl,-Bsymbolic"]
    return _build(source, ["-fPIC", *flags], linking, includes, label, LIBRARY_SUFFIX)


def program(
    source: str | Mapping[str, str],
    flags: Sequence[str],
    *,
    includes: Sequence[Path] = (),
    link_flags: Sequence[str] = (),
    label: str,
) -> Path:
    """Builds the C++ text `source` as an executable, or finds it built; as `shared_library` otherwise."""
    return _build(source, flags, [*([] if MAC else ["-ldl"]), *link_flags], includes, label, "")


def is_clang() -> bool:
    """Whether the compiler is clang."""
    return _identity(compiler()).clang


def _build(
    source: str | Mapping[str, str],
    flags: Sequence[str],
    link_flags: Sequence[str],
    includes: Sequence[Path],
    label: str,
    suffix: str,
) -> Path:
    path = compiler()
    units = {"kernel.cpp": source} if isinstance(source, str) else source
    identity = _identity(path)
    flags = _spelled(flags, identity)
    texts = [source] if isinstance(source, str) else [part for unit in source.items() for part in unit]
    parts = [*texts, *flags, "", *link_flags, "", path, identity.version, *(_contents(folder) for folder in includes)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    name = re.sub(r"\W+", "_", label)[:60]
    target = cache_folder() / f"{name}-{digest}{suffix}"
    if _is_whole(target):
        with contextlib.suppress(OSError):  # somebody else's cache, or read-only: not ours to tidy up either
            os.utime(target)
        return target
    _remove_unused(target.parent)
    with _lock(target):
        if not _is_whole(target):
            _compile(path, units, flags, link_flags, includes, label, target)
            _record_of(target).write_text(str(target.stat().st_size))
    return target


def _record_of(target: Path) -> Path:
    """The file that says how many bytes ``target`` has, and whose lock is that of building it."""
    return target.parent / "locks" / target.name


def _is_whole(target: Path) -> bool:
    """Whether it is there with the size that it was built with: a full disk or a crash may have cut it."""
    try:
        return _record_of(target).read_text() == str(target.stat().st_size)
    except OSError:
        return False


def _compile(
    path: str,
    units: Mapping[str, str],
    flags: Sequence[str],
    link_flags: Sequence[str],
    includes: Sequence[Path],
    label: str,
    target: Path,
) -> None:
    # Compiled and linked in two steps: one step would link the sanitizers' own runtimes, whose part ours plays.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
        command = [path, *flags, *(f"-I{folder}" for folder in includes), f"-fdebug-prefix-map={scratch}={UNIT}"]

        def run(step: Sequence[str]) -> None:
            done = _run(step, cwd=scratch)
            if done.returncode:
                raise CompileError(label, [line.replace(scratch + "/", "") for line in _diagnostics(done)])

        def compile_unit(name: str) -> str:
            code = Path(scratch, name)
            code.write_text(units[name], encoding="utf-8")
            made = str(code.with_suffix(".o"))
            run([*command, "-c", str(code), "-o", made])
            return made

        with ThreadPoolExecutor(os.cpu_count()) as workers:
            objects = list(workers.map(compile_unit, units))
        # By its own name: that is the one that macOS's debug information is looked for under.
        built = Path(scratch, target.name)
        run([path, "-o", str(built), *objects, *link_flags, *_mac_name(target)])
        if MAC:  # debug information stays in the object file unless it is gathered
            _run(["dsymutil", "-o", str(_debug_information(target)), str(built)])
        os.replace(built, target)


def _mac_name(target: Path) -> list[str]:
    """On macOS what links against a library asks for the name that was linked into it, which would be the scratch folder's."""
    return ["-install_name", str(target)] if MAC and target.suffix == LIBRARY_SUFFIX else []


def _debug_information(target: Path) -> Path:
    """The folder that macOS's tools look for beside a library or program."""
    return target.with_name(f"{target.name}.dSYM")


def _remove_unused(folder: Path) -> None:
    """Files that nobody asked for in a long time; what was just found is never among them."""
    oldest = time.time() - KEPT_SECONDS
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_mtime < oldest:
                path.unlink()
                shutil.rmtree(_debug_information(path), ignore_errors=True)


@contextlib.contextmanager
def _lock(target: Path) -> Iterator[None]:
    """One process at a time builds `target`; the others wait and find it. The system releases a dead process's lock."""
    record = _record_of(target)
    record.parent.mkdir(exist_ok=True)
    with open(record, "a") as file:  # emptied by nobody: what it says is looked at without the lock
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: Sequence[str], text: str | None = None, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    # Messages in English, whatever the user's language: they are read below.
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", errors="replace", cwd=cwd, env=environment
    )


def _diagnostics(done: subprocess.CompletedProcess[str], most: int = 12) -> list[str]:
    """The compiler's errors out of all it said, without the templates they came through; never nothing."""
    errors = [
        line
        for line in done.stderr.splitlines()
        if re.search(r"\b(error|undefined (reference|symbols?)|multiple definition)\b", line)
    ]
    command = shlex.join(map(str, done.args))
    found = errors or done.stderr.splitlines() or [f"{command} said nothing and ended with exit code {done.returncode}"]
    return found[:most] + ([f"and {len(found) - most} more"] if len(found) > most else [])


def _spelled(flags: Sequence[str], identity: _Identity) -> list[str]:
    every = [*flags, *GCC_FLAGS]
    if not identity.clang:
        return every
    return [spelled for flag in every for spelled in CLANG_FLAGS.get(flag, (flag,))]


def _identity(path: str) -> _Identity:
    return _identity_of(path, os.stat(path).st_mtime_ns)


@functools.cache
def _identity_of(path: str, _changed: int) -> _Identity:
    version = _run([path, "--version"]).stdout
    return _Identity("clang" in version, version)


def _contents(folder: Path) -> str:
    """The hash of all files under `folder`, read again only when one of them changed."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    states = ((str(path), (state := path.stat()).st_size, state.st_mtime_ns) for path in files)
    return _contents_of(tuple(states))


@functools.lru_cache(maxsize=64)
def _contents_of(files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, size, _ in files:
        digest.update(f"{path}\0{size}\0".encode())
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()
