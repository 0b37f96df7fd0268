"""A2A 1.0: an agent that the agents of others call. No other API imports this folder."""
