"""HTTP: chat, agents, explanations, health; authentication and problem responses."""
