"""Knows the shop's rules: `faq.answer`."""

from agents.faq.agent import agent

__all__ = ["agent"]
