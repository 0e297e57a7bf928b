"""Loading beside the contract: hub ids and their commits, real folders, damaged files, GGUF against its own library."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import mlx.core as mx
import numpy as np
import pytest
from huggingface_hub.errors import OfflineModeIsEnabled

from inferspec.conformance.checkpoints import blocks
from inferspec.conformance.checkpoints.gguf import content
from inferspec.golden import models
from inferspec.impl import gguf
from inferspec.impl.loading import load, located, read
from inferspec.impl.qwen3 import Qwen3
from inferspec.spec.numerics import f64

TINY = models.ROOT / "tiny-qwen3"
SHA, OTHER_SHA = "a" * 40, "b" * 40


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one repository, `someone/tiny`, whose main is at SHA; what was asked of it."""
    asked = SimpleNamespace(downloads=[], resolved=[])
    snapshot = tmp_path / "models--someone--tiny" / "snapshots" / SHA
    shutil.copytree(TINY, snapshot)

    def download(id: str, *, revision: str, allow_patterns: list[str]) -> str:
        asked.downloads.append((id, revision))
        assert "*.safetensors" in allow_patterns
        return str(snapshot)

    def info(self: object, id: str, *, revision: str) -> SimpleNamespace:
        asked.resolved.append(revision)
        return SimpleNamespace(sha=SHA)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", info)
    return asked


def test_main_is_resolved_to_its_commit_and_reported(hub, capsys):
    model = load("someone/tiny")
    assert hub.resolved == ["main"]
    assert hub.downloads == [("someone/tiny", SHA)]
    assert f"someone/tiny: main is {SHA}; pin it with revision='{SHA}'" in capsys.readouterr().err
    assert model(mx.array([[1, 2]])).shape == (1, 2, 512)


def test_a_branch_is_resolved_too(hub):
    located("someone/tiny", "refs/pr/1")
    assert (hub.resolved, hub.downloads) == (["refs/pr/1"], [("someone/tiny", SHA)])


def test_a_pinned_commit_is_asked_for_as_it_is(hub, capsys):
    located("someone/tiny", OTHER_SHA)
    assert (hub.resolved, hub.downloads) == ([], [("someone/tiny", OTHER_SHA)])
    assert not capsys.readouterr().err


def test_a_branch_cannot_be_resolved_without_a_network(hub, monkeypatch):
    def offline(self: object, id: str, *, revision: str) -> None:
        raise OfflineModeIsEnabled("HF_HUB_OFFLINE is set")

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", offline)
    with pytest.raises(ConnectionError, match="give the sha"):
        load("someone/tiny")


def test_a_real_download_of_a_pinned_commit_needs_no_network(tmp_path, monkeypatch):
    """The layout of the hub's own cache, with nothing but local files in it."""
    cache = tmp_path / "hub"
    snapshot = cache / "models--someone--tiny" / "snapshots" / SHA
    shutil.copytree(TINY, snapshot, ignore=shutil.ignore_patterns("*.txt"))
    (cache / "models--someone--tiny" / "refs").mkdir()
    (cache / "models--someone--tiny" / "refs" / "main").write_text(SHA)
    real = huggingface_hub.snapshot_download
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        lambda id, **options: real(id, cache_dir=cache, local_files_only=True, **options),
    )
    assert located("someone/tiny", SHA) == snapshot


def test_a_local_path_has_no_revision():
    with pytest.raises(ValueError, match="only hub repositories have one"):
        load(TINY, SHA)


@pytest.mark.parametrize("path", ["nothing", "no/such/folder", "a/b.gguf", "/no/such"])
def test_what_is_neither_path_nor_id_is_refused(path):
    with pytest.raises(FileNotFoundError, match="neither a folder"):
        load(path)


def test_another_file_is_refused():
    with pytest.raises(ValueError, match=r"not a folder of safetensors or a \.gguf file"):
        load(TINY / "config.json")


def test_an_unknown_model_type_is_refused_with_the_known_ones(tmp_path):
    _copy(tmp_path, model_type="mamba")
    with pytest.raises(ValueError, match="model_type is 'mamba'; it takes llama, qwen3"):
        load(tmp_path)


def test_an_index_that_leads_out_of_its_folder_is_refused(tmp_path):
    _copy(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": "../model.safetensors"}}))
    with pytest.raises(ValueError, match="not in its folder"):
        load(tmp_path)


def test_shards_without_their_index_are_refused(tmp_path):
    _copy(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-00001-of-00001.safetensors")
    with pytest.raises(FileNotFoundError, match=r"index\.json, which its shards"):
        load(tmp_path)


@pytest.mark.parametrize("kept", [0, 4, 100, 5000, -1])
def test_files_that_end_anywhere_too_early_are_refused(tmp_path, kept):
    _copy(tmp_path)
    file = tmp_path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model\.safetensors"):
        load(tmp_path)


def test_a_config_that_is_no_json_is_refused(tmp_path):
    _copy(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="not JSON"):
        load(tmp_path)


@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_a_folder_whose_config_scales_rope_is_the_model_of_that_config(tmp_path, place):
    shutil.copytree(TINY, tmp_path / "scaled")
    file = tmp_path / "scaled" / "config.json"
    config = json.loads(file.read_text())
    plain = Qwen3(config, read(tmp_path / "scaled")[1])
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    scaled = {name: x for name, x in config.items() if name not in ("rope_theta", "rope_parameters", "rope_scaling")}
    entry = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    if place == "rope_scaling":
        scaled |= {"rope_theta": theta, place: entry}
    else:
        scaled |= {place: {**entry, "rope_theta": theta}}
    file.write_text(json.dumps(scaled))
    tokens = mx.array([list(range(3, 40))])
    loaded = load(tmp_path / "scaled")(tokens)
    assert mx.array_equal(loaded, Qwen3(scaled, read(tmp_path / "scaled")[1])(tokens))
    assert not mx.array_equal(loaded, plain(tokens))


def test_rotary_frequencies_of_old_checkpoints_are_passed_over(tmp_path):
    _copy(tmp_path)
    weights = mx.load(str(tmp_path / "model.safetensors"))
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = mx.ones(32)
    mx.save_safetensors(str(tmp_path / "model.safetensors"), weights)
    load(tmp_path)


def _copy(folder: Path, **config: object) -> None:
    shutil.copytree(TINY, folder, dirs_exist_ok=True)
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**about, **config}))


# GGUF


def _llama_config(**more: object) -> dict[str, object]:
    return {
        "model_type": "llama",
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "vocab_size": 11,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500.0,
        "max_position_embeddings": 64,
        **more,
    }


EPS = 1e-5


def _file(tmp_path: Path, kind: str, factors: Sequence[float] = (), **config: object) -> Path:
    values = np.random.default_rng(0).normal(size=(11, 32))
    matrix = blocks.packed(values, kind)
    weights = {f"model.embed_tokens.{part}": x for part, x in matrix.items()}
    if factors:
        weights["rope_freqs.weight"] = np.array(factors, np.float32)
    path = tmp_path / "model.gguf"
    path.write_bytes(content(_llama_config(**config), weights))
    return path


@pytest.mark.parametrize("kind", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0"])
def test_blocks_are_what_the_library_of_the_format_reads(tmp_path, kind):
    library = pytest.importorskip("gguf")
    path = _file(tmp_path, kind)
    (tensor,) = library.GGUFReader(path).tensors
    theirs = library.quants.dequantize(tensor.data, tensor.tensor_type)
    config, weights = gguf.read(path)
    ours = {part: np.array(weights[name]) for name in weights for part in [name.rpartition(".")[2]]}
    if "scales" in ours:
        bits = config["quantization"]["bits"]
        values = blocks.dequantised(ours["weight"], ours["scales"], ours["biases"], bits)
    else:
        values = f64(ours["weight"])
    np.testing.assert_array_equal(values.astype(np.float32), theirs)


def test_numbers_of_the_header_are_the_shortest_ones(tmp_path):
    config, _ = gguf.read(_file(tmp_path, "F32"))
    assert config["rms_norm_eps"] == EPS


@pytest.mark.parametrize("kept", [0, 3, 10, 40, 200, 400, 700, -5])
def test_gguf_files_that_end_anywhere_too_early_are_refused(tmp_path, kept):
    path = _file(tmp_path, "Q4_1")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"model\.gguf"):
        load(path)


def test_another_type_of_tensor_is_refused_by_its_name(tmp_path):
    path = _file(tmp_path, "F32")
    data = bytearray(path.read_bytes())
    at = data.index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 16
    data[at : at + 4] = (14).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match=r"token_embd\.weight is of ggml type 14; it takes F32"):
        load(path)


def test_another_architecture_is_refused(tmp_path):
    path = _file(tmp_path, "F32", model_type="gemma")
    with pytest.raises(ValueError, match="architecture is 'gemma'; it takes llama or qwen3"):
        load(path)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        ({"type": "longrope", "factor": 4.0}, "RoPE scaling is 'longrope'; it takes none, linear or yarn"),
        ({"type": "yarn", "factor": 4.0, "attn_factor": 2.0}, r"has rope\.scaling\.attn_factor; it takes type, factor"),
    ],
)
def test_what_is_not_known_of_a_scaling_is_refused_by_its_name(tmp_path, scaling, message):
    with pytest.raises(ValueError, match=message):
        load(_file(tmp_path, "F32", rope_scaling=scaling))


@pytest.mark.parametrize("factors", [(1.0, 2.0, 3.0), (1.0, 2.0, 0.0, 4.0)])
def test_factors_of_the_frequencies_are_a_positive_number_for_each_pair(tmp_path, factors):
    with pytest.raises(ValueError, match=rf"rope_freqs\.weight is \[{len(factors)}\]; it takes 4 positive numbers"):
        load(_file(tmp_path, "F32", factors))


def test_a_yarn_of_a_gguf_file_that_says_no_positions_of_training_was_trained_on_its_context(tmp_path):
    config, _ = gguf.read(_file(tmp_path, "F32", rope_scaling={"type": "yarn", "factor": 4.0}))
    assert config["rope_scaling"]["original_max_position_embeddings"] == config["max_position_embeddings"]


def test_a_missing_tensor_of_a_gguf_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"model\.layers\.0\.input_layernorm\.weight|q_proj"):
        load(_file(tmp_path, "F32"))


def test_smollm2_is_read_with_the_bits_of_each_tensor():
    try:
        path = models.weights_of("smollm2-135m-instruct")
    except models.NotInstalled as missing:
        pytest.skip(str(missing))
    config, weights = read(path)
    assert config["quantization"] == {
        "group_size": 32,
        "bits": 4,
        "model.embed_tokens": {"group_size": 32, "bits": 8},
    }
    assert (config["rope_theta"], config["rms_norm_eps"], config["tie_word_embeddings"]) == (100000.0, EPS, True)
    assert weights["model.layers.29.mlp.down_proj.weight"].dtype == mx.uint32
    assert weights["model.layers.29.mlp.down_proj.scales"].dtype == mx.float32
