"""Looks up orders: `order.query`."""

from agents.order.agent import agent

__all__ = ["agent"]
