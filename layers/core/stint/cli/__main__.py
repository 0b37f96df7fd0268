"""`python -m stint.cli`: the commands of a stack's operator."""

import os
import sys

from stint.cli.command_line import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:], os.environ))
