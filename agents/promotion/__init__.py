"""Knows the current offers: `promotion.quote`."""

from agents.promotion.agent import agent

__all__ = ["agent"]
