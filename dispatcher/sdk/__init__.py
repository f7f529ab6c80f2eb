"""What an agent or a caller imports; knows the protocol only and pulls in nothing heavy."""
