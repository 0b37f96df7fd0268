"""Refusals of a caller's credential. Their texts are for the log, and never contain the credential."""


class InvalidCredential(Exception):
    """The credential is missing, wrong, expired or revoked."""


class AccessRefused(Exception):
    """The credential is valid, but its owner has no rights in this stack."""
