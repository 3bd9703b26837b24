"""`python -m dlfield`: the doctor; with `check`, the checker, with `fortran`, the generator."""

import sys

if __name__ == "__main__":
    if sys.argv[1:2] == ["check"]:
        from dlfield.check.command import main

        sys.exit(main(sys.argv[2:]))
    if sys.argv[1:2] == ["fortran"]:
        from dlfield.fortran.command import main

        sys.exit(main(sys.argv[2:]))
    from dlfield.doctor.command import main

    sys.exit(main())
