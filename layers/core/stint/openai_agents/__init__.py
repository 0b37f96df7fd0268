"""OpenAI's Agents API (beta) in one folder.

`schemas/` has the wire types, and the modules here convert them to agents, messages and turns, and turns back to items
and events of a stream. They read and write nothing. No other API imports this folder.
"""
