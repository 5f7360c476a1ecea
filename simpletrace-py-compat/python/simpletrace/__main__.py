"""Prints a trace: python -m simpletrace [--no-header] <trace-events> <trace-file>"""

import os
import sys

import simpletrace


def main() -> int:
    try:
        simpletrace.run(simpletrace.Formatter2())
        # Closed before Python began, it is None.
        if sys.stdout is not None:
            sys.stdout.flush()
    except simpletrace.SimpleException as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except BrokenPipeError:
        # Whoever reads has seen enough. What is left must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
