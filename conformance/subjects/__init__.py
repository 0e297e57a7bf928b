"""Adapters for implementations that no one here wrote. They show that right implementations pass."""
