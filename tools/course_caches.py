"""Key/value caches of the course, right all of them: as older editions had them, and as its text has them."""

OLDEST_CACHE = """
import mlx.core as mx

class TinyKvFullCache:
    def __init__(self):
        self.key_values = None

    def update_and_fetch(self, key, value, offset: int):
        if self.key_values is not None:
            key, value = (mx.concatenate(pair, axis=2) for pair in zip(self.key_values, (key, value)))
        self.key_values = key, value
        return key, value
"""
OLDER_CACHE = """
import mlx.core as mx

class TinyKvFullCache:
    def __init__(self):
        self.key, self.value = None, None

    def update_and_fetch(self, key, value):
        self.key = key if self.key is None else mx.concatenate([self.key, key], axis=2)
        self.value = value if self.value is None else mx.concatenate([self.value, value], axis=2)
        return self.key, self.value, self.key.shape[2]
"""
TEXT_CACHE = """
import mlx.core as mx

class TinyKvFullCache:
    def __init__(self):
        self.key, self.value, self.offset = None, None, 0

    def update_and_fetch(self, key, value):
        self.key = key if self.key is None else mx.concatenate([self.key, key], axis=1)
        self.value = value if self.value is None else mx.concatenate([self.value, value], axis=1)
        self.offset += key.shape[1]
        return self.key, self.value
"""
