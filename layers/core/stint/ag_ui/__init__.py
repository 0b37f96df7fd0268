"""AG-UI 1.0: an agent that web frontends call. No other API imports this folder."""
