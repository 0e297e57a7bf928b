"""Matches the contract's parameters with those of a subject's function: by name, by a name that is nearly it, the rest in order."""

from __future__ import annotations

import ast
import contextlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from inferspec.spec.contract import REQUIRED, Operation


class AdapterError(Exception):
    """The adapter cannot be used as it is; the message is one line that says why and how to mend it."""


SYNONYMS = {
    "bias": ("b",),
    "traditional": ("interleaved",),
    "eps": ("epsilon", "variance_epsilon", "norm_eps"),
    "mask": ("attn_mask", "attention_mask"),
    "scale": ("scaling", "sm_scale", "softmax_scale"),
    "base": ("theta", "rope_theta"),
    "axis": ("dim",),
    "dims": ("dim", "hidden_size", "normalized_shape"),
    "uniform": ("uniforms", "u"),
    "temperature": ("temp",),
    "top_k": ("topk",),
    "top_p": ("topp",),
    "max_tokens": ("max_new_tokens",),
    "eos": ("eos_ids", "eos_token_ids", "eos_id", "eos_token_id"),
    "num_pages": ("num_blocks", "num_kvcache_blocks", "num_gpu_blocks"),
    "num_blocks": ("num_pages", "num_kvcache_blocks", "num_gpu_blocks"),
    "page_size": ("block_size", "kvcache_block_size"),
    "block_size": ("page_size", "kvcache_block_size"),
    "max_requests": ("max_num_seqs", "max_batch_size", "max_running_requests", "max_num_requests"),
    "max_prefill_tokens": (
        "max_num_batched_tokens",
        "max_batched_tokens",
        "chunked_prefill_size",
        "prefill_chunk_size",
    ),
    "prefix_caching": ("enable_prefix_caching", "prefix_cache", "use_prefix_cache"),
    "num_draft_tokens": ("num_drafts", "num_speculative_tokens", "num_assistant_tokens", "draft_length", "gamma", "k"),
}
"""Other names of parameters that position cannot tell, since they or others may be left out: the field's own."""


class _Unknown:
    """Prints as what one writes for a default that is left out."""

    def __repr__(self) -> str:
        return "..."


UNKNOWN = _Unknown()
"""A default of which is known no more than that there is one."""

NANOBIND = ("nb_func", "nb_method")
"""Types of an extension's functions, which tell their forms as text."""

CATCH_ALL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """What a function or a class takes, or None where that cannot be read."""
    try:
        own = list(signature_of(function).parameters.values())
    except (ValueError, TypeError):
        return _parameters_of_extension(function)
    for place in range(min(_taken_by_place(function, own), len(own))):
        if own[place].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            own[place] = own[place].replace(kind=inspect.Parameter.POSITIONAL_ONLY)
    return own


def _taken_by_place(function: Callable[..., Any], own: Sequence[inspect.Parameter]) -> int:
    """How many of its first parameters must be given by position, though it has a name for them."""
    if hasattr(function, "dispatch"):
        # functools.singledispatch looks at what is given by position.
        return 1
    return max((_hidden(layer, own) for layer in _layers(_called(function))), default=0)


def _hidden(layer: inspect.Signature, own: Sequence[inspect.Parameter]) -> int:
    """A decorator's `def inner(x, *args, **kwargs)` shows the names of what it wraps, and takes its first by another; one without
    **kwargs takes all by position."""
    through = {p.kind for p in layer.parameters.values()} & set(CATCH_ALL)
    if through == {inspect.Parameter.VAR_POSITIONAL} and all(p.kind not in through for p in own):
        return len(own)
    places = [p.name for p in layer.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return max((n for n, (a, b) in enumerate(zip(places, own, strict=False), 1) if a != b.name), default=0)


def _layers(function: Any) -> Iterator[inspect.Signature]:
    """The signatures through which a call goes: of what takes anything also that of what it wraps."""
    with contextlib.suppress(ValueError, TypeError):
        layer = inspect.signature(function, follow_wrapped=False)
        yield layer
        if hasattr(function, "__wrapped__") and any(p.kind in CATCH_ALL for p in layer.parameters.values()):
            inner = function.__wrapped__
            yield from _layers(types.MethodType(inner, function.__self__) if inspect.ismethod(function) else inner)


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is called, of an object whose class has it as a static or a class method: looked up on it, that takes no object any more."""
    if isinstance(inspect.getattr_static(type(function), "__call__", None), staticmethod | classmethod):
        return function.__call__  # type: ignore[operator]
    return function


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The signature by which a function is called: its own, and of one that wraps another and takes anything that of the other.
    ValueError or TypeError where it has none that can be read."""
    if type(function).__name__ in NANOBIND:
        # From Python 3.13 on, inspect takes for it what C gives every type that can be called: (*args, **kwargs).
        raise ValueError(f"{function} tells its forms as text")
    function = _called(function)
    if hasattr(function, "__wrapped__"):
        with contextlib.suppress(ValueError, TypeError):
            own = inspect.signature(function, follow_wrapped=False)
            if not any(p.kind in CATCH_ALL for p in own.parameters.values()):
                return own
    return inspect.signature(function)


def _parameters_of_extension(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The same of a function of nanobind's, which tells its forms as text, where it has one alone."""
    forms: Sequence[Any] = getattr(function, "__nb_signature__", ())
    if type(function).__name__ not in NANOBIND or len(forms) != 1:
        return None
    try:
        # A default that cannot be written stands there as a number behind a backslash.
        definition = ast.parse(re.sub(r"\\\d+", "...", forms[0][0]) + ": ...").body[0]
    except SyntaxError:
        return None
    assert isinstance(definition, ast.FunctionDef)
    taken, unknown = definition.args, ast.Name("unknown", ast.Load())
    for parameter in (node for node in ast.walk(taken) if isinstance(node, ast.arg)):
        parameter.annotation = None
    taken.defaults = [unknown for _ in taken.defaults]
    taken.kw_defaults = [default and unknown for default in taken.kw_defaults]
    bare = ast.fix_missing_locations(ast.Expression(ast.Lambda(taken, unknown)))
    return list(inspect.signature(eval(compile(bare, "", "eval"), {"unknown": UNKNOWN})).parameters.values())


def matched(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    operation: type[Operation],
    by_name_alone: frozenset[str] = frozenset(),
    skip: int = 0,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Match the contract's parameters with the function's own, but for its first `skip`.

    Parameters that other arguments imply are left out where the function does not take them; those of
    `by_name_alone` also where it takes something of another name. Returns contract name -> own name ("" for by
    position), in the function's own order, and the defaults of those on which the function insists and the contract
    does not. AdapterError says what does not fit.
    """
    own = parameters_of(function)
    if own is None:
        return unread({name: d for name, d in parameters.items() if name not in by_name_alone}), {}
    matching = _Matching(own[skip:], parameters, operation.implied, by_name_alone)
    if problem := matching.problem():
        where = operation.signature.operation
        raise AdapterError(f"{where}{inspect.Signature(own)} {problem}; the contract is {spelt(operation)}")
    defaults = {**parameters, **operation.insisted}
    insisted = matching.insisted() - operation.required_narrows.keys()
    return matching.names, {name: defaults[name] for name in insisted if parameters[name] is not REQUIRED}


def spellings(parameters: Iterable[str]) -> dict[str, str]:
    """Each name by which a function may take one of the contract's parameters -> that parameter."""
    return {spelling: name for name in parameters for spelling in (name, *SYNONYMS.get(name, ()))}


def unread(parameters: Mapping[str, Any]) -> dict[str, str]:
    """How to call what has no readable signature: required parameters by position, the others by name."""
    return {name: ("" if default is REQUIRED else name) for name, default in parameters.items()}


def strange(function: Callable[..., Any], names: Mapping[str, str], skip: int = 0) -> list[str]:
    """What a function may be given by a name, but for its first `skip`, and is nothing of the contract. names: contract
    name -> own name, as `matched` found them."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    own = [p.name for p in (parameters_of(function) or [])[skip:] if p.kind in by_name]
    return [name for name in own if name not in names.values()]


class _Matching:
    """The matching of one signature: `found` has what is clearer first, and each step takes of what is `free` yet."""

    def __init__(
        self,
        own: list[inspect.Parameter],
        parameters: Mapping[str, Any],
        implied: frozenset[str],
        by_name_alone: frozenset[str],
    ) -> None:
        self.own = [p for p in own if p.kind not in CATCH_ALL]
        self.catches = {p.kind for p in own if p.kind in CATCH_ALL}
        self.parameters, self.implied, self.by_name_alone = parameters, implied, by_name_alone
        self.found: dict[str, inspect.Parameter] = {}
        self._find_by_name()
        self._find_by_likeness()
        self._find_in_order()
        self._leave_what_is_out_of_reach()
        self.names = {name: "" if p.kind is p.POSITIONAL_ONLY else p.name for name, p in self.found.items()}
        self._use_what_catches_all()

    @property
    def lacking(self) -> list[str]:
        """Required by the contract, and without a place so far."""
        return [name for name, d in self.parameters.items() if d is REQUIRED and name not in self.found]

    @property
    def required(self) -> list[str]:
        """Those of them that no other argument implies."""
        return [name for name in self.lacking if name not in self.implied]

    @property
    def free(self) -> list[inspect.Parameter]:
        """What could be given by position, and is nothing of the contract so far."""
        return [p for p in self.own if p not in self.found.values() and p.kind is not p.KEYWORD_ONLY]

    def _find_by_name(self) -> None:
        """The contract's own names first, and other names of what must be given before those of options."""
        named = {p.name: p for p in self.own}
        self.found = {name: named[name] for name in self.parameters if name in named}
        for name in sorted(self.parameters, key=lambda name: self.parameters[name] is not REQUIRED):
            others = [named[own] for own in SYNONYMS.get(name, ()) if own in named]
            left = [p for p in others if p not in self.found.values() and not self._says_less_than_its_place(p, name)]
            if name not in self.found and left:
                self.found[name] = left[0]

    def _says_less_than_its_place(self, own: inspect.Parameter, name: str) -> bool:
        """Whether it is a letter, which an option may have for a name, at a place of what must be given: the `b` of `a, b`."""
        if len(own.name) > 1 or own.kind is own.KEYWORD_ONLY or self.parameters[name] is REQUIRED:
            return False
        return self.free.index(own) < len(self.required)

    def _find_by_likeness(self) -> None:
        for name in self.lacking:
            if similar := [p for p in self.free if alike(p, name)]:
                self.found[name] = similar[0]

    def _find_in_order(self) -> None:
        """What must be given takes the next place; what is implied takes one only where more places insist than that."""
        required = self.required
        spare = sum(p.default is p.empty for p in self.free) - len(required)
        for name in self.lacking:
            if not self.free:
                return
            if name in required:
                self.found[name] = self.free[0]
            elif name not in self.by_name_alone and spare > 0:
                self.found[name] = self.free[0]
                spare -= 1

    def _leave_what_is_out_of_reach(self) -> None:
        """What stands behind a positional-only parameter that stays empty cannot be reached."""
        positional = [p for p in self.own if p.kind is p.POSITIONAL_ONLY]
        filled = [p in self.found.values() for p in positional]
        hidden = positional[filled.index(False) :] if False in filled else []
        places = sorted(self.found.items(), key=lambda pair: self.own.index(pair[1]))
        self.found = {name: p for name, p in places if p not in hidden}

    def _use_what_catches_all(self) -> None:
        left = [name for name in self.parameters if name not in self.names and name not in self.by_name_alone]
        lacking = [name for name in left if name in self.missing()]
        if self.catches == set(CATCH_ALL) and not self.own:
            # What hands on whatever it is given shows no more than what cannot be read.
            self.names = unread({name: self.parameters[name] for name in left})
        elif inspect.Parameter.VAR_KEYWORD in self.catches:
            self.names |= {name: name for name in left}
        elif inspect.Parameter.VAR_POSITIONAL in self.catches and lacking:
            # What comes behind goes by position, so that what comes before it must.
            self.names = {name: p.name if p.kind is p.KEYWORD_ONLY else "" for name, p in self.found.items()}
            self.names |= dict.fromkeys(lacking, "")

    def missing(self) -> list[str]:
        """What the contract must give and the function does not take."""
        return [name for name in self.required if name not in self.names]

    def problem(self) -> str:
        """What keeps the contract from calling the function, in words; "" where nothing does."""
        if missing := self.missing():
            return f"does not take {', '.join(missing)}"
        unfilled = [p.name for p in self.own if p.default is p.empty and p not in self.found.values()]
        if unfilled == ["self"]:
            return "needs self, as a method of a class does; name an object of that class"
        return f"needs {', '.join(unfilled)}, which no contract gives" if unfilled else ""

    def insisted(self) -> set[str]:
        """The contract's parameters that cannot be left out."""
        return {name for name, p in self.found.items() if p.default is p.empty}


def alike(own: inspect.Parameter, name: str) -> bool:
    """Whether a parameter has the contract's name in another number, or with more behind it: `weight` for `weights`,
    `key_states` for `key`. Its place says less than that: who takes values before keys says so. What may be left out is
    something else about it, as `weight_offset=0` is."""
    longer = len(name) > 1 and own.name.startswith(f"{name}_") and own.default is own.empty
    return _stem(own.name) == _stem(name) or longer


def _stem(name: str) -> str:
    return re.sub(r"(?<=\w{2})s$", "", re.sub(r"ies$", "y", name))


def spelt(operation: type[Operation]) -> str:
    """The contract's signature as one writes it: `RoPE(dims, max_positions, base=10000, traditional=False)(x, offset=None)`."""
    signature = operation.signature

    def spell(parameters: Mapping[str, Any]) -> str:
        return ", ".join(n if d is REQUIRED else f"{n}={d!r}" for n, d in parameters.items())

    init = f"({spell(signature.init)})" if signature.init is not None else ""
    method = f".{signature.method}" if signature.method else ""
    return f"{signature.name}{init}{method}({spell(signature.call)})"
