"""The contract with agents: frames, error codes, queue and exchange names."""
