"""Run an example, and let only what it prints itself reach standard output.

`python run_example.py SCRIPT ...` runs the script with its options. Progress bars write to standard
output, too, and go to standard error here.
"""

import functools
import runpy
import sys
from contextlib import redirect_stdout


def main() -> None:
    """Run the script that is named on the command line."""
    del sys.argv[0]
    own_print = functools.partial(print, file=sys.stdout)
    with redirect_stdout(sys.stderr):
        runpy.run_path(sys.argv[0], {"print": own_print}, run_name="__main__")


if __name__ == "__main__":
    main()
