"""Sizes on the command line, as the graphlane command reads them."""

import re

import click

POWERS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Size(click.ParamType):
    """12M, 2G: powers of 1024. 210MB: powers of 1000."""

    name = "size"

    def convert(self, value, param, ctx) -> int:
        if isinstance(value, int):
            return value
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)(B?)", value)
        if match is None or float(match[1]) == 0:
            self.fail(f"'{value}' is not a size (write 4096, 64K, 12M, 2G; 210MB)", param, ctx)
        unit = 1000 if match[3] else 1024
        return int(float(match[1]) * unit ** POWERS[match[2]])


SIZE = Size()
