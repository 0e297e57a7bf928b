"""Loads a package each module by itself, and finds in it what is written and what is only begun."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from inferspec.conformance.bridge.layouts.absent import is_absent, stand_in
from inferspec.conformance.bridge.signatures import AdapterError

COMPILED = re.compile(r"(^|[._])(ext|extensions)(_|\.|$)")
"""Names of compiled extensions, and of the folders that they are built in: `extensions.tiny_llm_ext`."""
UNFILLED = re.compile(r"RuntimeError: .*(is a starter stub|is GPU-only|Metal unavailable)")
"""What a compiled extension says of what is not written in it, or does not run here."""
LENT = ("mlx_lm", "transformers", "tokenizers", "huggingface_hub", "model_names")
"""What the modules of the convention import beside MLX, for annotations and downloads: not needed to be certified."""


class NotOffered(Exception):
    """The package has no such thing, or only the beginning of it; the message says which."""


class Broken(Exception):
    """It should lie in a module that could not be loaded; the message is that error."""


class Package:
    """The modules of a package, as far as they load. broken: module -> its error; lacking: what stand-ins stand for."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.modules: dict[str, ModuleType] = {}
        self.broken: dict[str, str] = {}
        self.lacking: dict[str, str] = {}
        self.root = self._root()
        self.origin = str(getattr(self.root, "__file__", None) or next(iter(self.root.__path__)))
        # Each turn of the loop puts a stand-in in some place, once.
        while self._load():
            pass
        self._finish()

    def find(self, *names: str, home: str | tuple[str, ...] = "", needs: tuple[str, ...] = ("__call__",)) -> Any:
        """The class or function of the first of some names that is written, and not only begun.

        home: the modules where it should lie, before others; needs: the methods that make a class more than a beginning.
        NotOffered or Broken where there is none.
        """
        homes = (home,) if isinstance(home, str) else home
        begun = ""
        for name in names:
            for thing in self._called(name, homes):
                problem = _unwritten(thing, needs)
                if not problem:
                    return thing
                begun = begun or f"{name} {problem}"
        for module in homes:
            if module in self.broken and not begun and self._mentions(module, names):
                raise Broken(f"{self.name}.{module} did not import: {self.broken[module]}")
        raise NotOffered(begun or f"there is no {' or '.join(names)} in {self.name}")

    def _called(self, name: str, homes: tuple[str, ...]) -> Iterator[Any]:
        """Everything of that name, first where it should lie."""
        order = [*(m for m in homes if m in self.modules), *(m for m in self.modules if m not in homes)]
        seen: list[Any] = []
        for module in order:
            thing = vars(self.modules[module]).get(name)
            # What other libraries wrote counts where the package's own should lie, and nowhere else.
            offered = callable(thing) and not is_absent(thing) and (module in homes or self._ours(thing))
            if offered and not any(thing is other for other in seen):
                seen.append(thing)
                yield thing

    def _mentions(self, module: str, names: tuple[str, ...]) -> bool:
        """Whether one of the names is in the text of a module that could not be loaded."""
        files = [Path(folder) / f"{module}.py" for folder in self.root.__path__] or [Path(self.origin)]
        text = "\n".join(file.read_text(errors="replace") for file in files if file.exists())
        return any(re.search(rf"\b{name}\b", text) for name in names)

    def _ours(self, thing: Any) -> bool:
        module = str(getattr(thing, "__module__", ""))
        return module.partition(".")[0] == self.name.partition(".")[0] or bool(COMPILED.search(module))

    def _root(self) -> ModuleType:
        """The package itself, without what its `__init__` does: that usually imports all modules at once."""
        try:
            spec = importlib.util.find_spec(self.name)
        except BaseException as error:
            raise AdapterError(f"{self.name}: looking for it failed with {type(error).__name__}: {error}") from error
        if spec is None:
            raise AdapterError(f"{self.name}: no package of that name can be imported from here; give its path")
        if spec.submodule_search_locations is None:
            return self._single(spec)
        root = ModuleType(self.name)
        root.__path__ = list(spec.submodule_search_locations)
        root.__file__, root.__package__, root.__spec__ = spec.origin, self.name, spec
        root.__dict__["__getattr__"] = self._anywhere
        sys.modules[self.name] = root
        return root

    def _single(self, spec: Any) -> ModuleType:
        root = ModuleType(self.name)
        root.__file__, root.__path__ = spec.origin, []
        return root

    def _load(self) -> bool:
        """Import every module that is not there yet; whether another turn is needed."""
        for full in self._names():
            short = full.rpartition(".")[2]
            if short in self.modules or short in self.broken:
                continue
            try:
                self.modules[short] = importlib.import_module(full)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                return self._stand_in_for(error, full)
        return False

    def _names(self) -> list[str]:
        if not self.root.__path__:
            return [self.name]
        found = (one.name for one in pkgutil.iter_modules(self.root.__path__) if not one.ispkg)
        return [f"{self.name}.{name}" for name in found if not name.startswith(("test_", "__"))]

    def _finish(self) -> None:
        """What the `__init__` itself defines, and stand-ins for kernels that are not written yet."""
        if self.root.__path__ and self.root.__spec__ is not None and self.root.__spec__.loader is not None:
            with contextlib.suppress(Exception, SystemExit):
                self.root.__spec__.loader.exec_module(self.root)
            self.modules["__init__"] = self.root
        for module in self.modules.values():
            for name, value in list(vars(module).items()):
                if isinstance(value, ModuleType):
                    if COMPILED.search(value.__name__) and "__getattr__" not in vars(value):
                        stand_in(value.__name__, f"{value.__name__} is not built here, or lacks it")
                elif self._ours(value):
                    _raise_where_begun(module, name, value)

    def _anywhere(self, name: str) -> Any:
        """What a module of the package asks of the package as a whole."""
        for full in self._names():
            with contextlib.suppress(Exception, SystemExit):
                if name in vars(module := importlib.import_module(full)):
                    return vars(module)[name]
        raise AttributeError(name)

    def _stand_in_for(self, error: BaseException, module: str) -> bool:
        """Put a stand-in in the place of what made an import fail: something from outside, or one of our modules."""
        outside = (error.name or "" if isinstance(error, ImportError) else "") or _extension(error)
        if outside not in self.lacking and (COMPILED.search(outside) or outside.partition(".")[0] in LENT):
            kind = "is not built here" if COMPILED.search(outside) else "is not installed here"
            self.lacking[outside] = f"{outside} {kind}"
            stand_in(outside, self.lacking[outside])
            return True
        if outside in self._names() and outside in sys.modules and outside not in self.lacking:
            # A name of a later chapter costs what calls it, and not the module that imports it.
            self.lacking[outside] = f"{outside} has not all that is imported from it: {error}"
            stand_in(outside, self.lacking[outside])
            return True
        culprit = self._culprit(error) or module
        short = culprit.rpartition(".")[2]
        self.broken[short] = f"{type(error).__name__}: {error}"
        sys.modules.pop(culprit, None)
        stand_in(culprit, f"{culprit} did not import: {self.broken[short]}")
        return True

    def _culprit(self, error: BaseException) -> str:
        """The module of ours in whose text the error arose."""
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        if isinstance(error, SyntaxError) and error.filename:
            files.append(error.filename)
        ours = {
            str(Path(folder) / f"{full.rpartition('.')[2]}.py"): full
            for folder in self.root.__path__
            for full in self._names()
        }
        return next((ours[file] for file in reversed(files) if file in ours), "")


def _extension(error: BaseException) -> str:
    """The name of a compiled extension in whose own text the error arose, as where it loads a library that is not there."""
    raised = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((name for name in reversed(raised) if COMPILED.search(name)), "")


def takes(function: Any, *names: str) -> str:
    """The first of the names that the function has a parameter of, "" where it has none (or cannot be asked)."""
    try:
        own = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ""
    return next((name for name in names if name in own), "")


def written(thing: Any, method: str) -> bool:
    """Whether a class has a method that is more than a beginning."""
    return not _begun(getattr(thing, method, None))


def _unwritten(thing: Any, needs: tuple[str, ...]) -> str:
    """What is not there yet of a function or class, in words."""
    if not inspect.isclass(thing):
        return "is a stub" if _begun(thing) else ""
    lacking = [need for need in needs if not any(need in vars(base) for base in thing.__mro__[:-1])]
    if lacking:
        return f"has no {', '.join(lacking)}"
    stubs = [need for need in needs if _begun(getattr(thing, need))]
    return f"is a stub: {', '.join(stubs)}" if stubs else ""


def _begun(function: Any) -> bool:
    """Whether the body of a function does nothing: `pass`, `...`, `return None`, raising NotImplementedError, or defining
    functions of its own that nothing calls."""
    function = function.fget if isinstance(function, property) else function
    if function is None:
        return True
    try:
        text = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
        (tree,) = ast.parse(text).body
    except (OSError, TypeError, ValueError, SyntaxError):
        return False
    return isinstance(tree, ast.FunctionDef) and all(_does_nothing(line) for line in tree.body)


def _raise_where_begun(owner: Any, name: str, thing: Any) -> None:
    """Have what is only begun, and says that it returns something, raise where it would return None: what calls it then
    reads as not claimed, and not as broken. A class has that done to its methods."""
    if inspect.isclass(thing):
        for attribute, own in list(vars(thing).items()):
            if inspect.isfunction(own):
                _raise_where_begun(thing, attribute, own)
    elif inspect.isfunction(thing) and _begun(thing) and _promises(thing):
        setattr(owner, name, _raising(thing))


def _raising(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def stub(*_: Any, **__: Any) -> Any:
        raise NotImplementedError(f"{function.__qualname__} is a stub")

    return stub


def _promises(function: Any) -> bool:
    """Whether a function's annotation says that it returns something, always."""
    told = str(inspect.signature(function).return_annotation)
    return told not in ("<class 'inspect._empty'>", "None") and not re.search(r"Optional|\| *None|Any", told)


def _does_nothing(line: ast.stmt) -> bool:
    match line:
        case ast.Pass() | ast.Expr(ast.Constant()) | ast.Return(None | ast.Constant(None)):
            return True
        case ast.FunctionDef() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Raise(ast.Call(ast.Name("NotImplementedError"))) | ast.Raise(ast.Name("NotImplementedError")):
            return True
    return False
