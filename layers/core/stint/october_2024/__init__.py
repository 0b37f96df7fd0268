"""The API of October 2024 in one folder.

`routes/` parses requests and submits them, `schemas/` has the wire types, and `composition.py` makes the use cases of a
tenant. The modules here convert requests to those of the other use cases, and their results and events back. No other
API imports this folder: `functions/october` composes it, and the import of stores reads its configurations of agents.
"""
