"""What operators see: logs, and the supervision of the loops that never end."""
