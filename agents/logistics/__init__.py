"""Follows parcels: `logistics.track`."""

from agents.logistics.agent import agent

__all__ = ["agent"]
