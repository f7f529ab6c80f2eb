"""Agent-Reach Dispatcher: decides which agent does what, delivers it, and brings one answer back."""
