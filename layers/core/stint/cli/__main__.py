"""`python -m stint.cli`: the commands of a stack's operator."""

import os
import sys

from stint.cli.command_line import run


def main() -> int:
    """Run the command of the arguments. Once the reader of its output has ended, such as `head`, it ends quietly."""
    try:
        code = run(sys.argv[1:], os.environ)
        sys.stdout.flush()
    except BrokenPipeError:
        if has_reader():  # another connection broke
            raise
        # Python writes what is left when it exits, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def has_reader() -> bool:
    """Return whether an empty line can be written to the output: what failed before may no longer be in its buffer."""
    try:
        print(flush=True)
    except BrokenPipeError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
