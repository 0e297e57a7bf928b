"""``inferspec bench scaling``: how the engine's speed and memory grow with the batch, the context and the pool."""
