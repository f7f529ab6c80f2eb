"""`python -m tests.faults.gateway run …`: the `dispatcher` command, with a kill point where one is named."""

import sys

from dispatcher.__main__ import main
from tests.faults import kill_points

if __name__ == "__main__":
    sys.argv[0] = "dispatcher"
    kill_points.arm()
    main()
