"""The composition root: the only place that builds parts from settings."""
