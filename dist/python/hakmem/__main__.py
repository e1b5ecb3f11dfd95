"""The hakmem command, as it is."""
import os
import sys

from hakmem import command


def main():
    os.execv(command(), ["hakmem", *sys.argv[1:]])


if __name__ == "__main__":
    main()
