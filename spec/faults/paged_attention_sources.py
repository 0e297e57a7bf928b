"""Where mistakes in paged attention are documented."""

from __future__ import annotations

VLLM = "https://github.com/vllm-project/vllm/"
