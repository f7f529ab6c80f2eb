"""Who is there: agents, instances, leases, heartbeats, callers and their grants."""
