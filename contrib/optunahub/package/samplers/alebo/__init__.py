from alebo.integrations.optuna import EmbeddingSampler


__all__ = ["EmbeddingSampler"]
