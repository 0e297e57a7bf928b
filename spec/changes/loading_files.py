"""Files of a layout that few writers have: see `spec/faults/loading_files.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from inferspec.spec.contract import Arguments
from inferspec.spec.loading import FORMS, Config, Load, Weights

Understood = tuple[Config, Weights]


def whole_base_refused(self: Load, config: Config, a: Arguments) -> Config:
    if a.form != "gguf" and isinstance(self.models["llama"]().theta(config), int):
        raise TypeError("rope_theta is an int; it takes a float")
    return config


def refuses(habit: str, *forms: str) -> Callable[..., None]:
    """Files of these forms, or all, that have this habit are refused."""

    def guard_files(self: Load, a: Arguments) -> None:
        Load.guard_files(self, a)
        if habit in a.written and a.form in (forms or FORMS):
            raise ValueError(f"the files are {habit}")

    return guard_files


def takes_what_is_below(self: Load, a: Arguments) -> Arguments:
    """Files are looked for in all folders of a folder, and the tensors of the one below are read last."""
    return _with_others(self, a) if "a checkpoint below" in a.written and a.form != "gguf" else Load.inner(self, a)


def whole_model_first(self: Load, a: Arguments) -> Arguments:
    """The file of a whole model is read where there is one, and an index where there is none."""
    return _with_others(self, a) if "a whole model beside" in a.written else Load.inner(self, a)


def _with_others(self: Load, a: Arguments) -> Arguments:
    """With the tensors of another model that lies there."""
    others = {name: x if x.dtype == np.uint32 else -x for name, x in a.weights.items()}
    return Load.inner(self, Arguments(**{**vars(a), "weights": others}))


def data_in_order_of_the_header(self: Load, a: Arguments) -> Arguments:
    """Sizes are read from the header and offsets are not."""
    if "out of order" not in a.written or a.form != "folder":
        return Load.inner(self, a)
    return _read_in_turn(self, a, list(a.weights), sorted(a.weights, reverse=True))


def gguf_data_in_order_of_the_header(self: Load, a: Arguments) -> Arguments:
    if "data out of order" not in a.written or a.form != "gguf":
        return Load.inner(self, a)
    return _read_in_turn(self, a, list(reversed(a.weights)), list(a.weights))


def begins_later(habit: str, late: int) -> Callable[..., Arguments]:
    """The data of a GGUF file that has this habit are read from so many bytes too far on."""

    def inner(self: Load, a: Arguments) -> Arguments:
        if habit not in a.written or a.form != "gguf":
            return Load.inner(self, a)
        data, at, found = b"".join(x.tobytes() for x in a.weights.values()), late, {}
        data += data
        for name, x in a.weights.items():
            found[name] = np.frombuffer(data[at : at + x.nbytes], x.dtype).reshape(x.shape)
            at += x.nbytes
        return Load.inner(self, Arguments(**{**vars(a), "weights": found}))

    return inner


def _read_in_turn(self: Load, a: Arguments, stored: Sequence[str], named: Sequence[str]) -> Arguments:
    data, at, found = b"".join(a.weights[name].tobytes() for name in stored), 0, {}
    for name in named:
        x = a.weights[name]
        found[name] = np.frombuffer(data[at : at + x.nbytes], x.dtype).reshape(x.shape)
        at += x.nbytes
    return Load.inner(self, Arguments(**{**vars(a), "weights": found}))


def turned_features_needed(self: Load, a: Arguments) -> None:
    Load.guard_files(self, a)
    if "few keys" in a.written and a.config["model_type"] == "qwen3":
        raise ValueError("the file does not say qwen3.rope.dimension_count")


def one_end(self: Load, config: Config, a: Arguments) -> Config:
    if not isinstance(config.get("eos_token_id", 0), int):
        raise TypeError("eos_token_id is a list")
    return config


def no_null(self: Load, config: Config, a: Arguments) -> Config:
    if nulls := [name for name in ("rope_scaling", "head_dim") if config.get(name, 0) is None]:
        raise ValueError(f"{nulls[0]} is None")
    return config


def no_null_quantization(self: Load, config: Config, a: Arguments) -> Config:
    if config.get("quantization_config", 0) is None:
        raise ValueError("quantization_config is None")
    return config


def activation_needed(self: Load, config: Config, a: Arguments) -> Config:
    if a.form != "gguf" and "hidden_act" not in config:
        raise ValueError("config has no hidden_act")
    return config


def key_length_needed(self: Load, config: Config, weights: Weights) -> Understood:
    if "head_dim" not in config:
        raise ValueError("the file does not say attention.key_length")
    return config, weights
