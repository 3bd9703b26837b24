"""`python -m dlfield`: the doctor."""

import sys

from dlfield.doctor.command import main

if __name__ == "__main__":
    sys.exit(main())
