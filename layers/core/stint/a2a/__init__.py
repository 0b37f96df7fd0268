"""A2A 1.0 by JSON-RPC: an agent of this server as an agent that others send tasks to."""
